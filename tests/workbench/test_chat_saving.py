"""A conversation becomes a case: in the editor, unsaved, and it passes when it is run."""

import json
from dataclasses import replace

import pytest

from evaltui.documents.edits import Put
from evaltui.workbench.chat import saving
from evaltui.workbench.chat.conversation import SessionStart, TurnStage
from tests.agents.agents_with_defaults import SOURCES
from tests.agents.framework_hosts import address_of

AGENT = """
    from evaltui.events import tool_call, tool_result

    def root_agent(message, session):
        if message == "raise":
            raise ValueError("not today")
        log = session.state.setdefault("log", [])
        log.append(message)
        if message.startswith("look"):
            yield "Let me see."
            yield tool_call("look_up", {"what": message})
            yield tool_result("look_up", {"seen": len(log)})
        yield f"You said {message} to {session.user_id}, as number {len(log)}."
"""


def said(text):
    return {"role": "user", "parts": [{"text": text}]}


@pytest.fixture
async def chatted(write_agent, write_set, until, open_workbench):
    """A conversation of four turns, the third of which failed."""
    folder = write_agent(AGENT)
    write_set(folder, one=("hi", "something"))
    workbench = await open_workbench(folder)
    workbench.chat.new(SessionStart(state={"tier": "gold", "log": ["zero"]}))
    for message in ("Hi there!", "look here", "raise", "bye"):
        workbench.chat.send(said(message))
        await until(lambda: not workbench.chat.busy)
    return workbench


def save(workbench, **changes):
    """Saves the conversation as proposed but for some choices."""
    choices = replace(saving.propose_choices(workbench.editing, workbench.chat.transcript), **changes)
    return saving.save(workbench.agent, workbench.editing, workbench.chat.transcript, choices)


def case_of(workbench):
    key = workbench.navigation.selection.case
    data = workbench.editing.data(workbench.navigation.file)
    return next(case for case in data["eval_cases"] if case["eval_id"] == key.eval_id)


async def run(workbench, until):
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    return workbench.outcomes.status(workbench.navigation.selection.case)


def test_what_is_proposed(chatted):
    choices = saving.propose_choices(chatted.editing, chatted.chat.transcript)
    assert choices.eval_id == "hi_there"
    assert (choices.target, choices.new_set) == (chatted.sets.listed[0].path, "conversations")
    assert [(turn.index, turn.text, turn.mode) for turn in choices.turns] == [
        (0, "Hi there!", "scored"),
        (1, "look here", "scored"),
        (3, "bye", "scored"),
    ]
    hi, look, _ = choices.turns
    assert hi.has == {"answer"}
    assert look.has == set(saving.PARTS)
    assert saving.problem(chatted.editing, choices) is None


async def test_the_case_is_unsaved_selected_and_passes_at_once(chatted, until):
    path = chatted.sets.listed[0].path
    on_disk = path.read_text("utf-8")
    assert save(chatted)
    assert chatted.navigation.selection.case == (path.name, "hi_there")
    assert chatted.messages.notice.text == ("Added hi_there to greetings.evalset.json   ctrl+s save")
    assert path.read_text("utf-8") == on_disk
    assert chatted.editing.is_dirty(path)
    case = case_of(chatted)
    assert case["session_input"] == {
        "app_name": "my_agent",
        "user_id": "test_user_id",
        "state": {"tier": "gold", "log": ["zero"]},
    }
    assert "final_session_state" not in case
    assert [turn["user_content"]["parts"][0]["text"] for turn in case["conversation"]] == [
        "Hi there!",
        "look here",
        "bye",
    ]
    assert await run(chatted, until) == "PASSED"
    chatted.editing.undo()
    assert "hi_there" not in [info.eval_id for info in chatted.sets.listed[0].cases]
    assert chatted.editing.unsaved() == []


async def test_a_conversation_with_a_sub_agent_says_which_runs_ask_it(chatted):
    chatted.chat.transcript.agent_name = "billing"
    note = "sub-agent billing answered, runs start with the root agent: use --agent billing"
    assert saving.sub_agent_note(chatted.agent, chatted.chat.transcript) == note
    assert save(chatted)
    assert chatted.messages.notice.text == f"Added hi_there to greetings.evalset.json   {note}"


async def test_context_and_what_is_not_expected_are_marks_in_the_config(chatted, until):
    choices = saving.propose_choices(chatted.editing, chatted.chat.transcript)
    hi, look, bye = choices.turns
    turns = (replace(hi, mode="context"), look.toggled("calls"), bye.toggled("answer"))
    assert save(chatted, turns=turns, eval_id="marked", final_state=True)
    path = chatted.navigation.file
    assert chatted.editing.config_data(path)["evaltui"]["turns"] == [
        {"set": "greetings", "case": "marked", "turn": 0, "mode": "context"},
        {"set": "greetings", "case": "marked", "turn": 1, "mode": "skip"},
    ]
    assert case_of(chatted)["final_session_state"] == {
        "tier": "gold",
        "log": ["zero", "Hi there!", "look here", "bye"],
    }
    assert "final_response" not in case_of(chatted)["conversation"][2]
    chatted.editing.undo()
    assert chatted.editing.undo_label is None
    assert chatted.editing.unsaved() in ([], [path.parent / "test_config.json"])


async def test_turns_may_be_left_out_and_the_state_is_that_before_the_first(chatted, until):
    choices = saving.propose_choices(chatted.editing, chatted.chat.transcript)
    hi, look, bye = choices.turns
    turns = (replace(hi, mode="left out"), look, replace(bye, mode="left out"))
    assert save(chatted, turns=turns, final_state=True)
    assert case_of(chatted)["session_input"]["state"]["log"] == ["zero", "Hi there!"]
    assert case_of(chatted)["final_session_state"]["log"] == ["zero", "Hi there!", "look here"]
    assert await run(chatted, until) == "PASSED"


@pytest.mark.usefixtures("fresh_hosts")
@pytest.mark.parametrize("framework", SOURCES)
@pytest.mark.parametrize("given", [{}, {"tier": "gold"}])
async def test_the_state_is_what_was_given_and_changed(write_agent, until, framework, given, open_workbench):
    """Defaults of the agent's class stay in its code: they are what is tested, and may be keys."""
    workbench = await open_workbench(address_of(write_agent(SOURCES[framework])))
    workbench.chat.new(SessionStart(state=given))
    for message in ("hi", "more"):
        workbench.chat.send(said(message))
        await until(lambda: not workbench.chat.busy)
    assert workbench.chat.transcript.state["currency"] == "EUR"
    hi, more = saving.propose_choices(workbench.editing, workbench.chat.transcript).turns
    for first, changed in ((hi, {}), (replace(hi, mode="left out"), {"asked": 1})):
        assert save(workbench, turns=(first, more), target=None, new_set=first.mode.replace(" ", "_"))
        state = case_of(workbench).get("session_input", {}).get("state", {})
        assert state == {**given, **changed}


async def test_without_a_state_there_is_no_session_input(chatted):
    assert save(chatted, state=False)
    assert "session_input" not in case_of(chatted)


async def test_a_new_set_is_made_for_it(chatted, until):
    assert save(chatted, target=None, new_set="mine")
    path = chatted.agent.dir / "mine.evalset.json"
    assert chatted.navigation.selection.case == (path.name, "hi_there")
    assert not path.exists()
    assert await chatted.editing.save(path)
    assert [case["eval_id"] for case in json.loads(path.read_text("utf-8"))["eval_cases"]] == ["hi_there"]
    assert await run(chatted, until) == "PASSED"


def test_what_cannot_be_saved_is_said(chatted):
    choices = saving.propose_choices(chatted.editing, chatted.chat.transcript)
    left_out = tuple(replace(turn, mode="left out") for turn in choices.turns)
    context = tuple(replace(turn, mode="context") for turn in choices.turns)
    problems = {
        "Select at least one turn": replace(choices, turns=left_out),
        "All turns are context; nothing to score": replace(choices, turns=context),
        "Case id is missing": replace(choices, eval_id=""),
        "one already exists": replace(choices, eval_id="one"),
        "greetings already exists": replace(choices, target=None, new_set="greetings"),
        "other.evalset.json is no longer an eval set of this agent": replace(
            choices, target=chatted.agent.dir / "other.evalset.json"
        ),
    }
    for problem, wrong in problems.items():
        assert saving.problem(chatted.editing, wrong) == problem
        assert not saving.save(chatted.agent, chatted.editing, chatted.chat.transcript, wrong)
        assert chatted.messages.notice.text == problem
    assert chatted.editing.unsaved() == []


def test_a_conversation_of_failures_is_no_case(chatted):
    for turn in chatted.chat.transcript.turns:
        turn.stage = TurnStage.FAILED
    assert chatted.chat.refuses_to_save() == ("No finished turn to save")


async def test_a_case_that_can_never_pass_is_said(write_agent, write_set, until, open_workbench):
    folder = write_agent("def root_agent(message, session):\n    return '👍'\n")
    write_set(folder, one=("hi", "something"))
    workbench = await open_workbench(folder)
    workbench.chat.new(SessionStart())
    workbench.chat.send(said("Hi there!"))
    await until(lambda: not workbench.chat.busy)
    assert save(workbench)
    assert workbench.messages.notice.text.startswith(
        "hi_there never passes: turn 1 expects a response without words; response_match_score scores it 0"
    )


OUTPUT_BESIDE_A_TEXT = """
    from google.adk.events.event import Event
    from google.adk.workflow import Workflow

    def node():
        return Event(message="shown", output={"value": 1})

    root_agent = Workflow(name="flow", edges=[("START", node)])
"""


@pytest.mark.parametrize("config", ["of a new set", "for all sets", "unsaved"])
async def test_an_output_is_expected_where_the_config_in_use_scores_it(
    config, write_agent, write_set, tmp_path, until, open_workbench
):
    pytest.importorskip("google.adk")
    folder = write_agent(OUTPUT_BESIDE_A_TEXT)
    write_set(folder, one=("hi", "something"))
    scores = {"criteria": {"response_match_score": 0.8}, "evaltui": {"outputs": "score"}}
    own, other = folder / "test_config.json", tmp_path / "all.json"
    place = other if config == "for all sets" else own
    place.write_text(json.dumps(scores if config != "unsaved" else {**scores, "evaltui": {}}))
    workbench = await open_workbench(folder, config=other if config == "for all sets" else None)
    if config == "unsaved":
        workbench.editing.do_edits("score", {own: [Put(("evaltui", "outputs"), "score")]})
    workbench.chat.new(SessionStart())
    workbench.chat.send({"role": "user", "parts": [{"text": "go"}]})
    await until(lambda: not workbench.chat.busy)
    transcript = workbench.chat.transcript
    choices = saving.propose_choices(workbench.editing, transcript)
    target = None if config == "of a new set" else choices.target
    assert saving.save(workbench.agent, workbench.editing, transcript, replace(choices, target=target))
    await workbench.editing.save_all()
    workbench.runs.run_case()
    await workbench.runs.finished()
    result = workbench.outcomes.get(workbench.navigation.selection.case).result
    assert (str(result.status), result.turns[0].response.expected) == ("PASSED", '{"value":1}')
