"""A conversation as a case: what is chosen, what is wrong with that, and the case in the editor.

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
from evaltui.core.model.eval_set import DEFAULT_USER_ID, EvalCase
from evaltui.core.model.events import Json
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.editing.set import SetEditor
from evaltui.files.configs import find_config, scores_outputs
from evaltui.files.folders import app_name
from evaltui.text.keys import key_of
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.case_plan import refusing
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.cases import set_editing
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.state import Selection

TurnMode = Literal["scored", "context", "left out"]

_NEW_SET = "conversations"
# Whom an agent talks to where nobody says: the case is run as the conversation was.


@dataclass(frozen=True)
class TurnChoice:
    """What becomes of a turn; `index` is its place in the transcript, `text` what the user says.

    `calls`, `results`, `intermediate` and `answer` are what becomes an expectation, where the turn `has_` it.
    Calls that are not known (`knows_calls`) become none.
    """

    index: int
    text: str
    has_calls: bool = False
    has_results: bool = False
    has_intermediate: bool = False
    has_answer: bool = False
    knows_calls: bool = True
    mode: TurnMode = "scored"
    calls: bool = True
    results: bool = True
    intermediate: bool = True
    answer: bool = True


@dataclass(frozen=True)
class SaveChoices:
    """`target` is the file of a set that exists; None means a new set called `new_set`.

    With `state` the state before the first turn goes into the case, with `final_state` the one after the last
    turn is expected.
    """

    eval_id: str
    turns: tuple[TurnChoice, ...]
    target: Path | None
    new_set: str = ""
    state: bool = True
    final_state: bool = False


def proposed(editing: Editing, transcript: Transcript) -> SaveChoices:
    """Every turn that counts, in the selected set, under an id made of the first message.

    Raises ValueError for a conversation that no case can be made of.
    """
    kept = [index for index, turn in enumerate(transcript.turns) if turn.counts]
    drafted = draft_case(
        "", [TurnDraft(transcript.turns[index].events) for index in kept], app_name="", user_id="", state={}
    )
    turns = tuple(
        _choice(index, transcript.turns[index].shown, turn, knows_calls=number not in drafted.marks)
        for number, (index, turn) in enumerate(zip(kept, drafted.case["conversation"], strict=True))
    )
    target = next(iter(targets(editing)), None)
    eval_set = editing.sets.by_path(target)
    taken = [case.eval_id for case in eval_set.cases] if eval_set else []
    first = next((turn.text for turn in turns if turn.text.strip()), "")
    names = (_NEW_SET if number == 1 else f"{_NEW_SET}_{number}" for number in count(1))
    free = next(name for name in names if set_editing.new_set_problem(editing, name) is None)
    return SaveChoices(propose_eval_id(first, taken), turns, target, free)


def targets(editing: Editing) -> list[Path]:
    """The sets that a case can be added to, the selected one first."""
    paths = [eval_set.path for eval_set in editing.sets.listed if not editing.refuses_to_edit(eval_set.path)]
    return sorted(paths, key=lambda path: path != editing.navigation.file)


def problem(editing: Editing, choices: SaveChoices) -> str | None:
    """Why it cannot be saved so, as a sentence."""
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


def twin(agent: AgentState, editing: Editing, transcript: Transcript, choices: SaveChoices) -> str:
    """The case of the chosen set that is the same but for its id, or whose user says the same, as a sentence;
    "" for none."""
    eval_set = editing.sets.by_path(choices.target)
    if eval_set is None or all(turn.mode == "left out" for turn in choices.turns):
        return ""
    try:
        found = twin_of(_draft(agent, transcript, choices).case, eval_set.cases)
    except ValueError:
        return ""
    if found is None:
        return ""
    if found.is_same:
        return f"Already in {eval_set.eval_set_id} as {found.eval_id}"
    return f"{found.eval_id} in {eval_set.eval_set_id} has the same user messages"


def save(agent: AgentState, editing: Editing, transcript: Transcript, choices: SaveChoices) -> bool:
    """Add the case to its set, unsaved and selected; False where it could not be, which is said.

    `choices` are of the turns of `transcript`. Set and config change as one step.
    """
    if reason := problem(editing, choices):
        editing.say(reason)
        return False
    with refusing(editing.say):
        draft = _draft(agent, transcript, choices)
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
            reason = _never_passes(path, draft)
            editing.say(
                f"{choices.eval_id} {reason}"
                if reason
                else f"Added {choices.eval_id} to {path.name}   {key_of('save')} save"
            )
        return done
    return False


def _never_passes(path: Path, draft: CaseDraft) -> str:
    """Why the case can never pass by the config of its set, "" where it can or that is not known."""
    try:
        config = find_config(path).config
    except EvalSetError:
        return ""
    context = [turn for turn, mode in draft.marks.items() if mode == "context"]
    return never_passes(EvalCase.model_validate(draft.case), config, context, draft.outputs)


def _choice(index: int, text: str, drafted: Json, *, knows_calls: bool) -> TurnChoice:
    events = drafted.get("intermediate_data", {}).get("invocation_events", ())
    parts = [part for event in events for part in event["content"]["parts"]]
    return TurnChoice(
        index,
        text,
        has_calls=any("function_call" in part for part in parts),
        has_results=any("function_response" in part for part in parts),
        has_intermediate=any(
            part.keys().isdisjoint(("function_call", "function_response")) for part in parts
        ),
        has_answer="final_response" in drafted,
        knows_calls=knows_calls,
        calls=knows_calls,
    )


def _draft(agent: AgentState, transcript: Transcript, choices: SaveChoices) -> CaseDraft:
    chosen = [turn for turn in choices.turns if turn.mode != "left out"]
    first, last = chosen[0].index, chosen[-1].index
    state = transcript.state_before(first) if choices.state else {}
    start = transcript.session
    drafts = [
        TurnDraft(
            transcript.turns[turn.index].events,
            context=turn.mode == "context",
            calls=turn.calls,
            results=turn.results,
            intermediate=turn.intermediate,
            answer=turn.answer,
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
        outputs=choices.target is not None and scores_outputs(choices.target),
    )
    return replace(drafted, case=without_secrets(drafted.case, agent.secrets))
