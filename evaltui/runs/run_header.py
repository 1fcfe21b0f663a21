"""The settings and the selection that a run was begun with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import member, members_of
from evaltui.core.model.tags import Tags
from evaltui.core.model.variants import Variant
from evaltui.runs.shards import ShardsOfRun

if TYPE_CHECKING:
    from evaltui.core.compare.repeat_rules import RepeatRule
    from evaltui.core.model.config import Repeats


@dataclass(frozen=True)
class SelectedSet:
    """An eval set of a run, and which of its cases were selected.

    `path` is that of `CaseId`, `config` what scored it, None where nobody knows; `whole` where all of its
    cases were selected. `places` are theirs in the set, from 0, None where nobody knows. `tags` are those of
    the selected cases, by their ids. `conversations` are those of traces that were scored, by the id of the
    case the ids of its repeats; None where the agent was run, or nobody knows.
    """

    path: str
    eval_set_id: str
    eval_ids: tuple[str, ...]
    config: Json | None = None
    whole: bool = False
    places: tuple[int, ...] | None = None
    tags: Tags = field(default_factory=dict)
    conversations: Mapping[str, tuple[str, ...]] | None = None
    more: Mapping[str, int] = field(default_factory=dict)
    """How often cases are run that are run more often than the others, by their ids."""
    fingerprint: str | None = None
    """Of the text of its file; None where nobody knows."""
    file: str | None = None
    """Its file as the run found it; None where nobody knows."""
    config_path: str | None = None
    """The file of its config; None for ADK's defaults, and where nobody knows."""
    defaulted: tuple[str, ...] | None = None
    """The criteria of its config that no file gave; None where nobody knows."""
    not_used: str | None = None
    """A config that stands above the set and is for other sets; None without one."""

    @cached_property
    def scored_by(self) -> Json | None:
        """Normal form of its config."""
        return None if self.config is None else normal_config(self.config)


@dataclass(frozen=True)
class RunHeader:
    """`files` are the agent's with fingerprints of what they hold, `data` is all that the header says besides
    the sets.

    `shards` are those of the selection that it holds, None where it was not divided. `variant` is the one
    that was run, None where none was asked for.
    """

    started: datetime
    sets: tuple[SelectedSet, ...]
    files: Mapping[str, str]
    data: Json
    shards: ShardsOfRun | None = None
    variant: Variant | None = None

    @property
    def matrix(self) -> str:
        """The id that all runs of its matrix have; "" where it is of none."""
        return str(self.data.get("matrix") or "")

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """All of its matrix, in their order; none where it does not say. Raises ValueError for what are no
        variants."""
        return tuple(map(Variant.from_json, member(self.data, "variants", list, [])))

    @property
    def number(self) -> int | None:
        """Number of the run, from 1; None outside of the runs of an agent."""
        return self.data.get("number")

    @property
    def of_traces(self) -> bool:
        """Whether recorded traces were scored instead of running the agent."""
        return bool(self.data.get("traces"))

    def is_of(self, agent_name: str | None) -> bool:
        """Whether the run is of this sub-agent, None for the root agent, as it is; or of traces.

        A variant that changes something is another agent.
        """
        if self.variant is not None and self.variant.changes:
            return False
        return self.of_traces or self.data.get("agent_name") == agent_name

    @property
    def unpaired(self) -> int:
        """How many of the scored conversations no case is for."""
        number: int = member(self.data, "unpaired", int, 0)
        return number

    @property
    def stopped(self) -> str:
        """Why cases have no result although nobody interrupted the run, such as its budget, a sentence; ""
        where it was not stopped."""
        return str(self.data.get("stopped") or "")

    @property
    def ended_early(self) -> str:
        """How a run ended that is not complete, in a word."""
        return "stopped" if self.stopped else "interrupted"

    @property
    def in_process(self) -> bool:
        """Whether the agent was an object, run in the process that evaluated it."""
        return self.data.get("in_process") is True

    @property
    def interpreter(self) -> Mapping[str, str]:
        """The `path` of the Python that the agent ran in, and its `reason`, "" for evaltui's own; empty where
        nobody knows."""
        return members_of(self.data, "interpreter", str)

    @property
    def trace_files(self) -> Mapping[str, str]:
        """Files of traces that were scored, as seen from the agent's folder, with the SHA-256 of each."""
        return members_of(self.data, "trace_files", str)

    @property
    def recordings(self) -> Mapping[str, str]:
        """Fingerprints of the recordings before the run, by the paths of their sets."""
        return members_of(self.data, "recordings", str)

    @property
    def confidence(self) -> Confidence | None:
        """How sure its verdicts had to be; None where the number of runs was fixed."""
        return Confidence.from_json(self.data) if "confidence" in self.data else None

    def repeat_rule(self, one: SelectedSet, eval_id: str, repeats: Repeats) -> RepeatRule:
        """How often a case is run whose config has `repeats`. Raises ValueError where it could never pass."""
        from evaltui.core.compare.repeat_rules import FixedRuns, repeat_rule

        if one.conversations is not None:
            return FixedRuns(max(len(one.conversations.get(eval_id, ())), 1))
        if eval_id in one.more:
            return FixedRuns(one.more[eval_id])
        runs, pass_if = self.data.get("runs") or repeats.runs, self.data.get("pass_if") or repeats.pass_if
        return repeat_rule(runs, pass_if, self.confidence)

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """The selected cases, each with its set id."""
        for one in self.sets:
            yield from ((CaseId(one.path, eval_id), one.eval_set_id) for eval_id in one.eval_ids)


def header_from_json(data: Json, sets: tuple[SelectedSet, ...]) -> RunHeader:
    """Raises ValueError where something is missing or of another kind than it is."""
    files = members_of(data, "files", str)
    started = datetime.fromisoformat(member(data, "started", str))
    shards = ShardsOfRun.from_json(member(data, "shards", dict)) if "shards" in data else None
    variant = Variant.from_json(member(data, "variant", dict)) if "variant" in data else None
    return RunHeader(started, sets, files, data, shards, variant)
