"""Saving a conversation as a case: the choices, their problems, and the new case.

Importing this loads the models, which a conversation has done before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal

from evaltui.core.conversation.drafting import (
    CaseDraft,
    TurnDraft,
    draft_case,
    propose_eval_id,
    without_secrets,
)
from evaltui.core.conversation.twins import twin_of
from evaltui.core.metrics.response_match import never_passes
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import DEFAULT_USER_ID, EvalCase
from evaltui.core.model.events import Json
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.editing.set import SetEditor
from evaltui.project.folders import app_name
from evaltui.text.keys import key_of
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.case_plan import show_errors
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.cases import set_editing
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.state import Selection

TurnMode = Literal["scored", "context", "left out"]
Part = Literal["calls", "results", "intermediate", "answer"]
PARTS: tuple[Part, ...] = ("calls", "results", "intermediate", "answer")

_NEW_SET = "conversations"


@dataclass(frozen=True)
class TurnChoice:
    """The choices for a turn; `index` is its place in the transcript, `text` the user's message.

    The parts in `expects` become expectations, where the turn `has` them. Unknown calls (not `knows_calls`)
    become no calls.
    """

    index: int
    text: str
    has: frozenset[Part]
    expects: frozenset[Part]
    knows_calls: bool = True
    mode: TurnMode = "scored"

    def toggled(self, part: Part) -> TurnChoice:
        """The choices with a part more or less expected; unknown calls stay."""
        stays = part == "calls" and not self.knows_calls
        return self if stays else replace(self, expects=self.expects ^ {part})


@dataclass(frozen=True)
class SaveChoices:
    """The choices for a case.

    `target` is the file of an existing set; None means a new set with the id `new_set`. With `state` the
    state before the first turn goes into the case, with `final_state` the state after the last turn is
    expected.
    """

    eval_id: str
    turns: tuple[TurnChoice, ...]
    target: Path | None
    new_set: str = ""
    state: bool = True
    final_state: bool = False


def propose_choices(editing: Editing, transcript: Transcript) -> SaveChoices:
    """The default choices: all counting turns, the selected set, and an id from the first message.

    Raises ValueError for a conversation that cannot become a case.
    """
    counting = [index for index, turn in enumerate(transcript.turns) if turn.counts]
    drafted = draft_case(
        "",
        [TurnDraft(transcript.turns[index].events) for index in counting],
        app_name="",
        user_id="",
        state={},
    )
    turns = tuple(
        _choice(index, transcript.turns[index].shown, turn, knows_calls=number not in drafted.marks)
        for number, (index, turn) in enumerate(zip(counting, drafted.case["conversation"], strict=True))
    )
    target = next(iter(targets(editing)), None)
    eval_set = editing.sets.by_path(target)
    used_ids = [case.eval_id for case in eval_set.cases] if eval_set else []
    first = next((turn.text for turn in turns if turn.text.strip()), "")
    names = (_NEW_SET if number == 1 else f"{_NEW_SET}_{number}" for number in count(1))
    free = next(name for name in names if set_editing.new_set_problem(editing, name) is None)
    return SaveChoices(propose_eval_id(first, used_ids), turns, target, free)


def targets(editing: Editing) -> list[Path]:
    """The editable sets, the selected one first."""
    paths = [eval_set.path for eval_set in editing.sets.listed if not editing.refuses_to_edit(eval_set.path)]
    return sorted(paths, key=lambda path: path != editing.navigation.file)


def problem(editing: Editing, choices: SaveChoices) -> str | None:
    """Why the case cannot be saved, as a sentence."""
    chosen = [turn for turn in choices.turns if turn.mode != "left out"]
    if not chosen:
        return "Select at least one turn"
    if all(turn.mode == "context" for turn in chosen):
        return "All turns are context; nothing to score"
    if choices.target is None:
        if reason := set_editing.new_set_problem(editing, choices.new_set):
            return reason
        return None if choices.eval_id else "Case id is missing"
    if editing.sets.by_path(choices.target) is None:
        return f"{choices.target.name} is no longer an eval set of this agent"
    if reason := editing.refuses_to_edit(choices.target):
        return reason
    try:
        eval_set = SetEditor(editing.data(choices.target))
    except (OSError, EvalSetError) as error:
        return str(error)
    return eval_set.eval_id_problem(choices.eval_id)


def sub_agent_note(agent: AgentState, transcript: Transcript) -> str:
    """A sentence about a conversation with a sub-agent, which runs of the case do not ask; "" for others."""
    name = transcript.agent_name
    if name is None or name == agent.address.name:
        return ""
    return f"sub-agent {name} answered, runs start with the root agent: use --agent {name}"


def twin(agent: AgentState, editing: Editing, transcript: Transcript, choices: SaveChoices) -> str:
    """A sentence about a case of the target set with the same data or the same user messages; "" for none."""
    eval_set = editing.sets.by_path(choices.target)
    if eval_set is None or all(turn.mode == "left out" for turn in choices.turns):
        return ""
    try:
        match = twin_of(_draft(agent, editing, transcript, choices).case, eval_set.cases)
    except ValueError:
        return ""
    if match is None:
        return ""
    if match.is_same:
        return f"Already in {eval_set.eval_set_id} as {match.eval_id}"
    return f"{match.eval_id} in {eval_set.eval_set_id} has the same user messages"


def save(agent: AgentState, editing: Editing, transcript: Transcript, choices: SaveChoices) -> bool:
    """Adds the case to its set, unsaved and selected; False, with a message, where that fails.

    `choices` are for the turns of `transcript`. Set and config change as one step.
    """
    if reason := problem(editing, choices):
        editing.say(reason)
        return False
    with show_errors(editing.say):
        draft = _draft(agent, editing, transcript, choices)
        path = choices.target
        if path is None:
            if not set_editing.new_set(editing, choices.new_set):
                return False
            path = editing.navigation.file
            assert path is not None
        after = Selection(editing.sets.case_path(path), choices.eval_id)
        done = editing.do(
            f"add {choices.eval_id}",
            path,
            lambda eval_set: eval_set.insert_case(draft.case, marks=draft.marks),
            after=after,
        )
        if done:
            editing.navigation.show(after)
            reason = _never_passes(editing, path, draft)
            note = sub_agent_note(agent, transcript) or f"{key_of('save')} save"
            editing.say(
                f"{choices.eval_id} {reason}"
                if reason
                else f"Added {choices.eval_id} to {path.name}   {note}"
            )
        return done
    return False


def _never_passes(editing: Editing, path: Path, draft: CaseDraft) -> str:
    """Why the case can never pass with the config of its set; "" where it can, or that is unknown."""
    if (config := _config(editing, path)) is None:
        return ""
    context = [turn for turn, mode in draft.marks.items() if mode == "context"]
    return never_passes(EvalCase.model_validate(draft.case), config, context, draft.outputs)


def _config(editing: Editing, path: Path) -> EvalConfig | None:
    """The config that scores a set as it is now, which may not exist yet; None where it is unreadable."""
    now = editing.sets.config_now(path)
    return None if isinstance(now, EvalSetError) else now.config


def _choice(index: int, text: str, drafted: Json, *, knows_calls: bool) -> TurnChoice:
    events = drafted.get("intermediate_data", {}).get("invocation_events", ())
    parts = [part for event in events for part in event["content"]["parts"]]
    has = {
        "calls": any("function_call" in part for part in parts),
        "results": any("function_response" in part for part in parts),
        "intermediate": any(part.keys().isdisjoint(("function_call", "function_response")) for part in parts),
        "answer": "final_response" in drafted,
    }
    expects = frozenset(part for part in PARTS if part != "calls" or knows_calls)
    return TurnChoice(index, text, frozenset(part for part in PARTS if has[part]), expects, knows_calls)


def _draft(agent: AgentState, editing: Editing, transcript: Transcript, choices: SaveChoices) -> CaseDraft:
    config = _config(editing, choices.target or set_editing.set_path(editing, choices.new_set))
    chosen = [turn for turn in choices.turns if turn.mode != "left out"]
    first, last = chosen[0].index, chosen[-1].index
    state = transcript.given_before(first) if choices.state else {}
    start = transcript.session
    drafts = [
        TurnDraft(
            transcript.turns[turn.index].events,
            context=turn.mode == "context",
            **{part: part in turn.expects for part in PARTS},
        )
        for turn in chosen
    ]
    # ADK makes the session of a case under these names, and cannot do without.
    named = bool(state or start.app_name or start.user_id)
    drafted = draft_case(
        choices.eval_id,
        drafts,
        app_name=start.app_name or (app_name(agent.dir) if named else ""),
        user_id=start.user_id or (DEFAULT_USER_ID if named else ""),
        state=state,
        final_state=transcript.turns[last].state_after if choices.final_state else None,
        outputs=config is not None and config.evaltui.outputs == "score",
    )
    return replace(drafted, case=without_secrets(drafted.case, agent.secrets))
