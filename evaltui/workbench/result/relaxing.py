"""Relaxing a difference between arguments, and the trial of any edit of a config on the last results."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from evaltui.core.compare.proposals import Proposal, arg_paths, proposals
from evaltui.core.matching.rules import match_data, rules_of_case
from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.answer_rule import RuleScope
from evaltui.core.model.arg_rule import ALL_ARGS, ArgRule, json_path_of, parse_arg_path
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.json_values import ABSENT, value_at
from evaltui.core.model.outcome import ArgDiff, CallDiff, CaseResult
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CaseFile
from evaltui.documents.editing.config import ConfigEditor, Rule
from evaltui.documents.edits import EditError
from evaltui.documents.formats import WholeText
from evaltui.documents.line_changes import LineChange, changed_lines
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.case_plan import change_config, preview_config
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.result.rescoring import actual_of, score_again
from evaltui.workbench.state import CaseOutcome

Tried = TypeVar("Tried")
"""An edit that is tried, such as a rule."""

# Seconds between two looks at an effect that is still being counted.
_PAUSE_SECONDS = 0.1
# Cases that are looked at between two keys, where a look takes next to nothing.
_CASES_PER_SLICE = 200


@dataclass(frozen=True)
class Change:
    """A case whose outcome would change, with its statuses before and after."""

    case: CaseId
    before: str
    after: str


@dataclass(frozen=True)
class Effect:
    """The effect of a rule, as far as it is known.

    `result` is this case with the rule, None where its run has no log. `changes` are other cases, among the
    first `seen` of the `cases` that the rule may concern; `unknown` are those without a log.
    """

    result: CaseResult | None
    changes: tuple[Change, ...] = ()
    seen: int = 0
    cases: int = 0
    unknown: int = 0

    @property
    def is_complete(self) -> bool:
        return self.seen == self.cases


class Trial(ABC, Generic[Tried]):
    """A rule, or another edit of the config, that is tried on the last results before it is written."""

    def __init__(self, agent: AgentState, editing: Editing, case: CaseId, scored: CaseOutcome) -> None:
        self._agent = agent
        self._sets = editing.sets
        self._outcomes = editing.outcomes
        self._editing = editing
        self.case = case
        self._set_path = editing.sets.file_of(case.path)
        self.scored = scored
        """The result for which the rule is tried."""

    @abstractmethod
    def _put(self, config: ConfigEditor, tried: Tried) -> None:
        """Writes the edit into a config. Raises EditError for an invalid one."""

    @abstractmethod
    def _names(self, tried: Tried) -> Mapping[str, Any]:
        """The `set` and the `case` that the edit is for, each only where it is for one."""

    @abstractmethod
    def _concerns(self, result: CaseResult, tried: Tried) -> bool:
        """Whether the edit may change the outcome of another result in its scope."""

    @abstractmethod
    def _label(self, tried: Tried) -> str:
        """The undo label."""

    def _scope(self, scope: RuleScope) -> dict[str, str]:
        """The names of the set and the case that a rule is for."""
        eval_set_id = self._set_id(self.case, self.scored)
        if scope == "case":
            return {"set": eval_set_id, "case": self.case.eval_id}
        return {"set": eval_set_id} if scope == "set" else {}

    def _set_id(self, case: CaseId, scored: CaseOutcome) -> str:
        """The id of the set of a case as it is now, by which rules name it; its run may have another."""
        eval_set = self._sets.by_case_path(case.path)
        return eval_set.eval_set_id if eval_set else scored.figures.eval_set_id

    # What it would do

    async def effects(self, tried: Tried) -> AsyncIterator[Effect]:
        """The effect of an edit, first for this case, then step by step for the others.

        Earlier results are scored again without an agent. Raises EditError for an invalid edit, and where the
        config has errors.
        """
        config = self._config(self._after(lambda config: self._put(config, tried))[1])
        with_rule = await self._score(self.case, self.scored, self._case_after(tried), config)
        effect = Effect(with_rule.result if with_rule else None)
        others = [] if "case" in self._names(tried) else [change async for change in self._others(tried)]
        effect = replace(effect, cases=len(others))
        shown = time.monotonic()
        yield effect
        for case, scored in others:
            new = await self._score(case, scored, scored.stored, config)
            effect = replace(effect, seen=effect.seen + 1, unknown=effect.unknown + (new is None))
            if new is not None and new.result.status != scored.result.status:
                change = Change(case, scored.result.status, new.result.status)
                effect = replace(effect, changes=(*effect.changes, change))
            if time.monotonic() - shown > _PAUSE_SECONDS and not effect.is_complete:
                shown = time.monotonic()
                yield effect
        if others:
            yield effect

    def changes(self, tried: Tried) -> list[tuple[Path, Sequence[LineChange]]]:
        """The removed and added lines of each file. Raises OSError, EvalSetError, EditError."""
        before, after = self._after(lambda config: self._put(config, tried))
        is_there = self._editing.is_there(self.config_path)
        return [(self.config_path, changed_lines(before if is_there else WholeText(""), after))]

    @property
    def config_path(self) -> Path:
        """The edited config."""
        return self._sets.config_path(self._set_path)

    async def _others(self, tried: Tried) -> AsyncIterator[tuple[CaseId, CaseOutcome]]:
        """The other cases whose outcome an edit may change."""
        sets, config, eval_set_id = self._sets, self.config_path, self._names(tried).get("set")
        paths = [
            path for path in self._outcomes.results.paths() if sets.config_path(sets.file_of(path)) == config
        ]
        results = [result for path in paths for result in self._outcomes.results.of(path)]
        for number, (case, scored) in enumerate(results):
            if number % _CASES_PER_SLICE == 0:
                await asyncio.sleep(0)
            if eval_set_id not in (None, self._set_id(case, scored)) or case == self.case:
                continue
            # Of an unreadable one nobody knows.
            if scored.problem or self._concerns(scored.result, tried):
                yield case, scored

    def _case_after(self, tried: Tried) -> StoredCase:
        """This case with the edit, which a trial may make in it, too."""
        return self.scored.stored

    async def _score(
        self, case: CaseId, scored: CaseOutcome, stored: StoredCase, config: EvalConfig
    ) -> CaseOutcome | None:
        events = await asyncio.to_thread(self._outcomes.events_of, case)
        if events is None:
            return None
        return await score_again(
            scored,
            actual_of(events),
            stored,
            config,
            self._agent.secrets,
            self._set_id(case, scored),
        )

    def apply(self, tried: Tried) -> bool:
        """Makes the edit, as one step; False, with a message, where that fails."""
        return change_config(
            self._editing, self._label(tried), self._set_path, lambda config: self._put(config, tried)
        )

    def _after(self, change: Callable[[ConfigEditor], None]) -> tuple[CaseFile, CaseFile]:
        return preview_config(self._editing, self._set_path, change)

    def _config(self, document: CaseFile) -> EvalConfig:
        config, problems = validate_config(document.value)
        if config is None:
            raise EditError(f"{self.config_path.name} has errors: {problems[0]}")
        return config


class RuleTrial(Trial[Rule]):
    """A rule that is tried."""

    def _names(self, tried: Rule) -> Mapping[str, Any]:
        return {name: tried[name] for name in ("set", "case") if name in tried}


class Relaxing(RuleTrial):
    """A difference between arguments in the last result of a case, or one that a rule already allows.

    Raises EditError where the result has no such difference (any more).
    """

    def __init__(
        self,
        agent: AgentState,
        editing: Editing,
        case: CaseId,
        difference: DifferenceAt,
    ) -> None:
        scored, self._call, self.arg = _find(editing.outcomes, case, difference)
        super().__init__(agent, editing, case, scored)
        self._path: JsonPath = json_path_of(self.arg.path)

    # What can be chosen

    @property
    def tool(self) -> str:
        call = self._call.expected or self._call.actual
        return call.name if call else ""

    @property
    def arg_paths(self) -> list[str]:
        """The possible `arg` values of a rule: this argument first, all arguments last."""
        return arg_paths(self._path)

    def proposals(self, arg: str) -> list[Proposal]:
        """The match values of a rule for this argument that let the difference pass, the most specific
        first."""
        path = self._path[: len(parse_arg_path(arg))]
        mine, theirs = (
            value_at((call.args if call else None) or {}, path, ABSENT)
            for call in (self._call.expected, self._call.actual)
        )
        return proposals(mine, theirs)

    def rule(self, arg: str, match: Any, scope: RuleScope = "case") -> dict[str, Any]:
        """A rule for this case, for this set, or for all cases of this config."""
        return {"tool": self.tool, "arg": arg, "match": match, **self._scope(scope)}

    @property
    def passing(self) -> tuple[int, dict[str, Any]] | None:
        """The rule that allows the difference now, and its index in the config; None for none.

        Raises EditError where the config has errors.
        """
        config = self._config(self._after(lambda config: None)[0])
        set_id = self._set_id(self.case, self.scored)
        rules = rules_of_case(config.evaltui.rules, set_id, self.case.eval_id)
        expected, actual = self._call.expected, self._call.actual
        if self.tool not in rules or expected is None or actual is None:
            return None
        rule_in_use = rules[self.tool].passing(expected.args, actual.args, self._path)
        if rule_in_use is None:
            return None
        index = next(index for index, rule in enumerate(config.evaltui.rules) if rule is rule_in_use)
        return index, rule_in_use.model_dump(exclude_unset=True) | {"match": match_data(rule_in_use.match)}

    # Doing it

    def _put(self, config: ConfigEditor, tried: Rule) -> None:
        config.put_rule(tried)

    def _concerns(self, result: CaseResult, tried: Rule) -> bool:
        return any(_differs(row, tried["tool"]) for row in _rows(result))

    def _label(self, tried: Rule) -> str:
        return f"relax {self._name(tried['arg'])} of {self.tool}"

    def remove(self) -> bool:
        """Removes the rule that allows the difference."""
        passing = self.passing
        if passing is None:
            self._editing.say("No rule passes")
            return False
        index, rule = passing
        label = f"check {self._name(rule['arg'])} of {self.tool} again"
        return change_config(self._editing, label, self._set_path, lambda config: config.remove_rule(index))

    @staticmethod
    def _name(arg: str) -> str:
        return "all arguments" if arg == ALL_ARGS else arg


def match_problem(text: str) -> str | None:
    """Why a text is no valid match value of a rule, as a sentence; None where it is."""
    return rule_problem(text, lambda match: ArgRule(tool="any", arg=ALL_ARGS, match=match))


def rule_problem(text: str, read: Callable[[Any], object]) -> str | None:
    """Why a text is no JSON that `read` takes, as a sentence; None where it is."""
    try:
        read(json.loads(text))
    except json.JSONDecodeError as error:
        return f"not valid JSON: {error.msg} at character {error.pos + 1}"
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return None


def _find(
    outcomes: Outcomes, case: CaseId, difference: DifferenceAt
) -> tuple[CaseOutcome, CallDiff, ArgDiff]:
    scored = outcomes.get(case)
    turns = dict(enumerate(scored.shown.turns)) if scored else {}
    turn = turns.get(difference.turn or 0)
    row = dict(enumerate(turn.calls)).get(difference.row or 0) if turn else None
    arg = next((arg for arg in row.args if arg.path == difference.path), None) if row else None
    differs = arg is not None and (arg.op != "same" or bool(arg.rule))
    if scored is None or row is None or arg is None or not differs or difference.kind != "argument":
        raise EditError("Only arguments can be relaxed")
    return scored, row, arg


def _rows(result: CaseResult) -> Iterator[CallDiff]:
    for repeat in result.repeats:
        for turn in repeat.turns:
            yield from turn.calls


def _differs(row: CallDiff, tool: str) -> bool:
    """Whether a rule for the tool may change a row: equal calls stay equal."""
    call = row.expected or row.actual
    return call is not None and call.name == tool and (row.op != "same" or bool(row.args))
