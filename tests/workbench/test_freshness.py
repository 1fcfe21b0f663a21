"""A verdict is that of now, or says that it is not, whatever was changed and wherever."""

import asyncio
import json
import os
import shutil
from types import SimpleNamespace

import pytest
from fake_runs import FakeRuns, NoHost, says

from evaltui.core.model.case_id import CaseId
from evaltui.documents.edits import Put, Remove
from evaltui.runs import execution
from evaltui.text.lines import draw
from evaltui.tui.result.selected import View, write_page
from evaltui.tui.widgets.writer import DEFAULT_FOLDING, Page
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.cases import set_editing
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench
from tests import stored_runs

SET, CONFIG = "s.evalset.json", "test_config.json"
AGENT = """
def root_agent(message, session):
    return message
"""
CALL = {"id": "1", "name": "look_up", "args": {"city": "Oslo"}}
ANSWER = {"id": "1", "name": "look_up", "response": {"found": 3}}
METRICS = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}


def message(text, *parts):
    return {"role": "user", "parts": [{"text": text}, *parts]}


def config(criteria=METRICS, **block):
    return {"criteria": criteria, "evaltui": block}


def turn(text, answer):
    return {
        "user_content": message(text),
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": []},
    }


def case(eval_id="a", **fields):
    return {"eval_id": eval_id, "conversation": [turn("hi", "hi")], **fields}


def first_turn(**fields):
    return {"conversation": [turn("hi", "hi") | fields]}


def session(**state):
    return {"session_input": {"app_name": "desk", "user_id": "me", "state": state}}


PICTURE = {"inline_data": {"mime_type": "image/png", "data": "aGk="}}
SCENARIO = {"starting_prompt": "hi", "conversation_plan": "ask"}
PRICED = "[tool.evaltui.prices]\nm = {input_mtok = 1, output_mtok = 2.5}"
PRICES = {"gemini-2.5-pro": {"input_mtok": 1.0, "output_mtok": 2.0}}
CONTEXT = {"set": "s", "case": "a", "turn": 0, "mode": "skip"}
STUBBED = {"tool_uses": [CALL], "tool_responses": [ANSWER]}
# A change, the file that it is made in, what is written there, and what is said of the verdict then.
CHANGES = {
    "nothing": (SET, case(), "fresh"),
    "user text": (SET, case(**first_turn(user_content=message("ho"))), "stale: case"),
    "file of a message": (SET, case(**first_turn(user_content=message("hi", PICTURE))), "stale: case"),
    "further turn": (SET, case(conversation=[turn("hi", "hi"), turn("ho", "ho")]), "stale: case"),
    "initial state": (SET, case(**session(room="attic")), "stale: case"),
    "scenario": (SET, {"eval_id": "a", "conversation_scenario": SCENARIO}, "stale: case"),
    "no case any more": (SET, case(conversation=[{"user_content": {"parts": 1}}]), "stale: case"),
    "expected response": (SET, case(**first_turn(final_response=message("no"))), "rescored FAILED"),
    "expected call": (SET, case(**first_turn(intermediate_data=STUBBED)), "rescored FAILED"),
    "renamed": (SET, case("b"), "none"),
    "removed": (SET, None, "none"),
    "unchecked calls": (CONFIG, config(turns=[CONTEXT]), "rescored PASSED"),
    "tags": (CONFIG, config(tags=[{"set": "s", "case": "a", "tags": ["new"]}]), "fresh"),
    "stubbed tool": (CONFIG, config(tools={"look_up": "stub"}), "stale: config"),
    "threshold": (CONFIG, config(METRICS | {"response_match_score": 0.5}), "rescored PASSED"),
    "further metric": (CONFIG, config(METRICS | {"cost_usd": 1.0}), "rescored NOT_EVALUATED"),
    "price of a limit": (CONFIG, config(METRICS | {"cost_usd": 1.0}, prices=PRICES), "stale: config"),
    "more repeats": (CONFIG, config(repeats={"runs": 3}), "stale: config"),
    "no config any more": (CONFIG, "{oops", "stale: config"),
    "config refused": (CONFIG, json.dumps(config({"tool_trajectory_avg_score": 7.0})), "stale: config"),
    "code": ("agent.py", "# more", "stale: agent.py"),
    "prompt": ("prompt.md", "Be short.", "stale: prompt.md"),
    "environment": (".env", "KEY=1", "stale: .env"),
}


PLACES = ("workbench", "outside", "between")


def rows():
    """Every change at every place: each at one of them daily, the others with `--thorough`."""
    for number, (change, (_, content, _)) in enumerate(CHANGES.items()):
        # The agent, its prompts and its environment are not edited in the workbench.
        places = PLACES[1:] if isinstance(content, str) else PLACES
        for place in places[:2] if change == "no case any more" else places:
            daily = place == places[number % len(places)] or change in ("user text", "expected response")
            # Files in messages load a library for seconds.
            marks = [] if daily and change != "file of a message" else [pytest.mark.thorough]
            yield pytest.param(change, place, marks=marks, id=f"{change}, {place}")


def write(folder, name, content):
    if name == SET:
        content = {"eval_set_id": "s", "eval_cases": [case("other"), *([content] if content else [])]}
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


async def run(request, sets, on_update, start_host):
    settings = SimpleNamespace(agent=SimpleNamespace(variant=None))
    return await execution.run(request, sets, on_update, lambda: NoHost(settings))


async def open_with_results(folder):
    workbench = Workbench(folder, run_service=run)
    await workbench.open()
    await workbench.outcomes.restore()
    return workbench


@pytest.fixture
def opened(open_workbench):
    """Opens a folder until the test ends."""

    async def open_until_the_end(folder):
        workbench = await open_workbench(folder, run_service=run)
        await workbench.outcomes.restore()
        return workbench

    return open_until_the_end


@pytest.fixture
def folder(as_run, tmp_path):
    return shutil.copytree(as_run, tmp_path / "desk")


@pytest.fixture(scope="module")
def as_run(tmp_path_factory):
    """A folder with an agent and a set whose cases have passed."""
    folder = tmp_path_factory.mktemp("run") / "desk"
    folder.mkdir()
    for name, content in ((SET, case()), (CONFIG, config()), ("agent.py", AGENT)):
        write(folder, name, content)

    async def run_all():
        workbench = await open_with_results(folder)
        workbench.runs.run_all()
        await workbench.runs.finished()
        await workbench.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
        asyncio.run(run_all())
    for log in folder.rglob("*.sqlite"):
        # Data that changes within a second of its end counts as written by the run.
        stored_runs.change(log, "UPDATE run SET seconds = seconds - 60")
    return folder


def edit(workbench, folder, name, content):
    """Changes a file as the user would."""
    if name == CONFIG:
        edits = [Put((key,), value) for key, value in content.items()]
    else:
        edits = [Remove(("eval_cases", 1)) if content is None else Put(("eval_cases", 1), content)]
    eval_id = content["eval_id"] if name == SET and content else "a"
    moved = {CaseId(SET, "a"): CaseId(SET, eval_id)} if eval_id != "a" else {}
    workbench.editing.do_edits("edit", {folder / name: edits}, moved=moved)


async def stand(workbench):
    """What tree, header and status line are told of the case."""
    outcomes = workbench.outcomes
    await outcomes.rescored([])
    ids = {case.eval_id for case in workbench.sets.every_case()}
    key = next((key for eval_id in "ab" if (key := CaseId(SET, eval_id)).eval_id in ids), CaseId(SET, "a"))
    now = outcomes.freshness(key)
    if now is None or key.eval_id not in ids:
        return "none"
    counts = outcomes.counts()
    # No run takes a set that has errors, or whose config has.
    assert workbench.watch.waiting().cases == (set() if workbench.sets.broken(SET) else outcomes.stale())
    assert outcomes.is_stale(key) is now.is_stale is (key in outcomes.stale())
    if now.is_stale:
        assert counts["STALE"]
        return f"stale: {', '.join(now.reasons)}"
    assert counts[outcomes.status(key)]
    return now.state.value if now.state == "fresh" else f"{now.state} {outcomes.status(key)}"


@pytest.mark.parametrize(("change", "where"), list(rows()))
async def test_a_verdict_is_that_of_now_or_says_that_it_is_not(folder, opened, change, where):
    name, content, expected = CHANGES[change]
    before = (folder / name).read_text() if (folder / name).exists() else None
    if where == "between":
        write(folder, name, content)
    workbench = await opened(folder)
    if where == "workbench":
        edit(workbench, folder, name, content)
    elif where == "outside":
        write(folder, name, content)
        await workbench.open()
    if change == "renamed" and where == "workbench":
        expected = "rescored PASSED"
    if change == "no case any more" and where == "outside":
        expected = "stale: set, case"
    assert await stand(workbench) == expected
    assert workbench.outcomes.counts().total() == len(list(workbench.sets.every_case()))
    if where == "workbench":
        workbench.editing.undo()
    elif before is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(before)
    await workbench.open()
    if change == "removed" and where == "workbench":
        assert await stand(workbench) == "fresh"
    elif name in (SET, CONFIG) and expected != "none":
        # Of what it was changed from between two starts, a run has only fingerprints.
        assert await stand(workbench) in ("fresh", *["rescored PASSED"] * (where == "between"))
    elif name not in (SET, CONFIG):
        assert await stand(workbench) == "fresh"


OLD_TURN = {"query": "hi", "expected_tool_use": [], "reference": "hi"}
OLD_FORMATS = {
    "s.test.json": [OLD_TURN],
    SET: [{"name": "a", "data": [OLD_TURN], "initial_session": {}}],
}


@pytest.mark.parametrize("name", OLD_FORMATS)
async def test_a_result_of_a_set_in_an_old_format_is_current(tmp_path, opened, monkeypatch, name):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    for file, content in ((name, OLD_FORMATS[name]), (CONFIG, config()), ("agent.py", AGENT)):
        (tmp_path / file).write_text(content if isinstance(content, str) else json.dumps(content))
    workbench = await opened(tmp_path)
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert workbench.outcomes.counts() == {"PASSED": 1}
    workbench = await opened(tmp_path)
    assert workbench.outcomes.counts() == {"PASSED": 1}


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(
    ("change", "named", "outcome"),
    [
        # Its marks go with it, or stay with the id that it had.
        ("rename", "s", "NOT_EVALUATED"),
        ("rename outside", "s", "PASSED"),
        ("rename outside", "t", "NOT_EVALUATED"),
        ("move", "s", "NOT_EVALUATED"),
        ("nothing", "s", "NOT_EVALUATED"),
    ],
)
async def test_a_verdict_is_by_the_marks_of_the_set_that_the_case_is_in(
    folder, opened, change, named, outcome, between
):
    write(folder, CONFIG, config(turns=[{"set": named, "case": "a", "turn": 0, "mode": "context"}]))
    (folder / "u.evalset.json").write_text(json.dumps({"eval_set_id": "u", "eval_cases": []}))
    workbench = await opened(folder)
    await workbench.outcomes.rescored([])
    if change == "rename":
        assert set_editing.rename_set(workbench.editing, folder / SET, "t")
    elif change == "move":
        workbench.navigation.select(Selection(SET, "a"))
        set_editing.copy(workbench.editing, cut=True)
        workbench.navigation.select(Selection("u.evalset.json"))
        set_editing.paste(workbench.editing)
    elif change == "rename outside":
        data = json.loads((folder / SET).read_text()) | {"eval_set_id": "t"}
        (folder / SET).write_text(json.dumps(data))
        await workbench.open()
    if between:
        await workbench.editing.save_all()
        await workbench.close()
        workbench = await opened(folder)
    await workbench.outcomes.rescored([])
    moved = CaseId("u.evalset.json" if change == "move" else SET, "a")
    now = workbench.outcomes.freshness(moved)
    assert (now.state, workbench.outcomes.status(moved)) == ("rescored", outcome)
    if between:
        return
    workbench.editing.undo()
    await workbench.outcomes.rescored([])
    if named == "s" and change != "rename outside":
        assert workbench.outcomes.status(CaseId(SET, "a")) == "NOT_EVALUATED"


async def test_a_run_that_is_opened_is_shown_as_it_came_out_whatever_its_set_is_called(folder, opened):
    write(folder, CONFIG, config(turns=[{"set": "t", "case": "a", "turn": 0, "mode": "context"}]))
    data = json.loads((folder / SET).read_text()) | {"eval_set_id": "t"}
    (folder / SET).write_text(json.dumps(data))
    workbench = await opened(folder)
    await workbench.outcomes.rescored([])
    last = {"PASSED": 1, "NOT_EVALUATED": 1}
    assert workbench.outcomes.counts() == last
    (log,) = workbench.agent.store.files()
    assert await workbench.outcomes.open_run(log, "run 1")
    assert workbench.outcomes.counts() == {"PASSED": 2}
    workbench.outcomes.leave_previous_run()
    await workbench.outcomes.rescored([])
    assert workbench.outcomes.counts() == last


async def test_a_case_with_the_id_of_a_deleted_one_keeps_its_own_result(folder, opened):
    workbench = await opened(folder)
    editing, path = workbench.editing, folder / SET
    edit(workbench, folder, SET, CHANGES["user text"][1])
    assert editing.do("delete", path, lambda eval_set: eval_set.delete_cases([1]))
    moved = {CaseId(SET, "other"): CaseId(SET, "a")}
    assert editing.do("rename", path, lambda eval_set: eval_set.rename_case(0, "a"), moved=moved)
    for counts in ({"PASSED": 1}, {"PASSED": 1}, {"PASSED": 1, "STALE": 1}, {"PASSED": 2}):
        await workbench.outcomes.rescored([])
        assert workbench.outcomes.counts() == counts
        editing.undo()


async def test_cases_without_a_result_are_counted_beside_a_set_that_cannot_be_read(folder, opened):
    workbench = await opened(folder)
    more = {"eval_set_id": "u", "eval_cases": [case("new"), case("newer")]}
    (folder / "u.evalset.json").write_text(json.dumps(more))
    (folder / SET).write_text("{oops")
    await workbench.open()
    assert workbench.outcomes.counts() == {"STALE": 2, "NOT_RUN": 2}


@pytest.fixture
def waiting_run(monkeypatch):
    """Set when a case has begun, and to be set for it to go on."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Waiting(FakeRuns):
        async def _act(self, *which):
            begun.set()
            await go_on.wait()
            return await super()._act(*which)

    monkeypatch.setattr("evaltui.runs.execution.follow_plan", Waiting().follow)
    return begun, go_on


async def test_cases_of_a_set_that_is_deleted_during_their_run_are_not_counted(folder, opened, waiting_run):
    begun, go_on = waiting_run
    more = {"eval_set_id": "u", "eval_cases": [case("new")]}
    (folder / "u.evalset.json").write_text(json.dumps(more))
    workbench = await opened(folder)
    workbench.runs.run_all()
    await begun.wait()
    (folder / "u.evalset.json").unlink()
    await workbench.open()
    go_on.set()
    await workbench.runs.finished()
    assert len(workbench.runs.current.done) == 3
    assert workbench.outcomes.counts() == {"PASSED": 2}
    assert workbench.outcomes.get(CaseId("u.evalset.json", "new")) is None


async def test_cases_that_others_delete_during_their_run_are_gone_at_its_end(folder, opened, waiting_run):
    begun, go_on = waiting_run
    write(folder, SET, case("a"))
    workbench = await opened(folder)
    workbench.runs.run_all()
    await begun.wait()
    others = [case("other", **first_turn(user_content=message("ho")))]
    (folder / SET).write_text(json.dumps({"eval_set_id": "s", "eval_cases": others}))
    go_on.set()
    await workbench.runs.finished()
    assert list(workbench.sets.every_case()) == [CaseId(SET, "other")]
    assert workbench.outcomes.counts() == {"STALE": 1}


async def test_a_running_case_that_others_rename_has_no_row_and_is_not_counted(folder, opened, waiting_run):
    begun, go_on = waiting_run
    workbench = await opened(folder)
    workbench.runs.run_cases("a", [CaseId(SET, "a")])
    await begun.wait()
    assert workbench.outcomes.counts() == {"PASSED": 1, "RUNNING": 1}
    write(folder, SET, case("b"))
    await workbench.open()
    assert workbench.outcomes.counts() == {"PASSED": 1, "NOT_RUN": 1}
    go_on.set()
    await workbench.runs.finished()
    assert workbench.outcomes.counts() == {"PASSED": 1, "NOT_RUN": 1}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("name", "reason"), [(SET, "set"), (CONFIG, "config")])
async def test_verdicts_are_stale_while_set_or_config_cannot_be_read(folder, opened, name, reason, is_open):
    text = (folder / name).read_text()
    workbench = await opened(folder)
    outcomes = workbench.outcomes
    if is_open:
        workbench.editing.data(folder / name)
    assert outcomes.counts() == {"PASSED": 2}
    (folder / name).write_text("{oops")
    await workbench.open()
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "a")) == ("stale", (reason,))
    assert outcomes.counts() == {"STALE": 2}
    assert not workbench.watch.waiting().cases
    (folder / name).write_text(text)
    await workbench.open()
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "a")) == ("fresh", ())
    assert outcomes.counts() == {"PASSED": 2}


@pytest.mark.parametrize("is_open", [False, True])
async def test_verdicts_of_a_set_that_no_run_takes_are_stale_unless_it_is_being_edited(
    folder, opened, is_open
):
    workbench = await opened(folder)
    outcomes, twin = workbench.outcomes, case("a", **first_turn(user_content=message("ho")))
    if is_open:
        workbench.editing.data(folder / SET)
    data = json.loads((folder / SET).read_text())
    (folder / SET).write_text(json.dumps(data | {"eval_cases": [*data["eval_cases"], twin]}))
    await workbench.open()
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "other")) == ("stale", ("set",))
    assert "PASSED" not in outcomes.counts()
    workbench.editing.do_edits("mend", {folder / SET: [Remove(("eval_cases", 2))]})
    await outcomes.rescored([])
    assert outcomes.counts() == {"PASSED": 2}
    workbench.editing.do_edits("break", {folder / SET: [Put(("eval_cases", 0, "conversation"), 1)]})
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "a")) == ("fresh", ())


@pytest.mark.parametrize("has_same_time", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
async def test_a_run_takes_what_is_on_disk_and_that_is_shown(
    folder, opened, is_open, has_same_time, monkeypatch
):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    workbench = await opened(folder)
    if is_open:
        workbench.editing.data(folder / SET)
    before = (folder / SET).stat()
    write(folder, SET, case(**first_turn(user_content=message("ho"))))
    if has_same_time:
        # As what unpacks an archive, or builds an image, may set it.
        assert (folder / SET).stat().st_size == before.st_size
        os.utime(folder / SET, ns=(before.st_atime_ns, before.st_mtime_ns))
    workbench.runs.run_cases("a", [CaseId(SET, "a")])
    await workbench.runs.finished()
    assert workbench.outcomes.freshness(CaseId(SET, "a")) == ("fresh", ())
    shown = workbench.sets.case_now(CaseId(SET, "a"))
    assert "ho" in shown.text
    assert workbench.outcomes.get(CaseId(SET, "a")).stored.says_the_same(shown)
    assert workbench.outcomes.counts() == {"PASSED": 2}


@pytest.mark.parametrize("is_link", [False, True])
async def test_an_error_of_a_config_is_not_one_of_its_sets_and_ends_with_the_config(folder, opened, is_link):
    config_path = folder / CONFIG
    config_path.unlink()
    if is_link:
        config_path.symlink_to("nowhere")
    else:
        config_path.write_text("{oops")
    workbench = await opened(folder)
    workbench.sets.open(workbench.sets.listed[0].path)
    refusal = ACTIONS_BY_ID["run"].refusal(workbench)
    why = "link to nowhere, which does not exist" if is_link else "not valid JSON"
    assert refusal.startswith(f"Cannot run: {CONFIG}")
    assert why in refusal
    config_path.unlink()
    await workbench.look_again()
    workbench.sets.open(workbench.sets.listed[0].path)
    assert ACTIONS_BY_ID["run"].refusal(workbench) is None


async def test_a_reload_shows_what_another_process_has_run(folder, opened, monkeypatch):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    workbench, other = await opened(folder), await opened(folder)
    workbench.runs.run_all()
    await workbench.runs.finished()
    await workbench.outcomes.restore()
    assert workbench.runs.current.seconds == workbench.outcomes.last_run.seconds
    write(folder, SET, case(**first_turn(user_content=message("ho"))))
    await other.open()
    other.runs.run_all()
    await other.runs.finished()
    runs = workbench.runs_now
    await workbench.open()
    assert await stand(workbench) == "stale: case"
    await workbench.reload()
    assert await stand(workbench) == "fresh"
    assert workbench.outcomes.get(CaseId(SET, "a")).run.name == "run 3"
    assert workbench.runs_now != runs


async def test_no_run_is_read_again_while_nobody_else_runs(folder, opened, monkeypatch):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    other = await opened(folder)
    other.runs.run_all()
    await other.runs.finished()
    workbench = await opened(folder)
    await workbench.restore()
    workbench.runs.run_all()
    await workbench.runs.finished()
    reads = []
    module = "evaltui.workbench.result.earlier_results.last_outcomes"
    monkeypatch.setattr(module, lambda *_: iter(reads.append(1) or ()))
    await workbench.look_again()
    assert reads == []
    other.runs.run_all()
    await other.runs.finished()
    await workbench.look_again()
    assert reads == [1]


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ((SET, case(**first_turn(user_content=message("ho"), final_response=message("no")))), ("case",)),
        ((SET, case(**first_turn(final_response=message("no")))), ("case",)),
        ((CONFIG, config(METRICS | {"response_match_score": 0.5})), ("config",)),
    ],
    ids=["user text", "expected response", "threshold"],
)
async def test_an_opened_run_of_another_case_or_config_stays_as_it_came_out(folder, opened, changed, reasons):
    write(folder, *changed)
    workbench = await opened(folder)
    outcomes = workbench.outcomes
    (log,) = workbench.agent.store.files()
    assert await outcomes.open_run(log, "run 1")
    assert outcomes.freshness(CaseId(SET, "a")) == ("then", reasons)
    assert outcomes.counts() == {"PASSED": 2}
    data = json.loads((folder / SET).read_text())["eval_cases"][1]
    data["conversation"][0]["final_response"] = message("other")
    edit(workbench, folder, SET, data)
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "a")).state == "then"
    assert outcomes.freshness(CaseId(SET, "a")).reasons[0] == "case"
    assert outcomes.counts() == {"PASSED": 2}


async def test_an_edit_that_scores_an_opened_run_says_that_its_agent_was_another_one(folder, opened):
    write(folder, "agent.py", AGENT + "\n# more")
    workbench = await opened(folder)
    outcomes = workbench.outcomes
    (log,) = workbench.agent.store.files()
    assert await outcomes.open_run(log, "run 1")
    assert outcomes.freshness(CaseId(SET, "a")) == ("then", ("agent.py",))
    edit(workbench, folder, SET, case(**first_turn(final_response=message("no"))))
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "a")) == ("stale", ("agent.py",))
    assert outcomes.counts() == {"PASSED": 1, "STALE": 1}
    workbench.editing.undo()
    await outcomes.rescored([])
    assert outcomes.freshness(CaseId(SET, "a")) == ("then", ("agent.py",))


async def test_a_run_that_is_opened_while_its_results_are_scored_again_is_shown_as_it_came_out(
    folder, opened
):
    workbench = await opened(folder)
    outcomes = workbench.outcomes
    (log,) = workbench.agent.store.files()
    edit(workbench, folder, CONFIG, config(METRICS | {"cost_usd": 1.0}))
    assert await outcomes.open_run(log, "run 1")
    await outcomes.rescored([])
    assert outcomes.counts() == {"PASSED": 2}
    assert outcomes.freshness(CaseId(SET, "a")) == ("then", ("config",))
    outcomes.leave_previous_run()
    await outcomes.rescored([])
    assert outcomes.counts() == {"NOT_EVALUATED": 2}


async def test_a_result_that_an_opened_run_has_too_stays_stale_when_it_is_left(folder, opened):
    write(folder, SET, case(**first_turn(final_response=message("no"))))
    workbench = await opened(folder)
    outcomes, key = workbench.outcomes, CaseId(SET, "a")
    await outcomes.rescored([])
    (log,) = workbench.agent.store.files()
    edit(workbench, folder, SET, case(**first_turn(user_content=message("ho"))))
    await outcomes.rescored([])
    assert (outcomes.last_status(key), outcomes.freshness(key).state) == ("FAILED", "stale")
    assert await outcomes.open_run(log, "run 1")
    again = first_turn(user_content=message("ho"), final_response=message("other"))
    edit(workbench, folder, SET, case(**again))
    outcomes.leave_previous_run()
    await outcomes.rescored([])
    assert (outcomes.last_status(key), outcomes.freshness(key).state) == ("FAILED", "stale")


def page(workbench, *selected):
    """The lines of the result pane."""
    workbench.navigation.select(Selection(*selected))
    written = Page(110)
    write_page(written, workbench, View(DEFAULT_FOLDING, 50, is_small=False))
    return [draw(line, color=False).rstrip() for line in written.lines]


def changes(workbench):
    """What the page of the set says is another outcome than before."""
    (eval_set,) = workbench.sets.listed
    return [
        (one.case.eval_id, one.before.status, one.status)
        for one in workbench.outcomes.results_of_set(eval_set).changes
    ]


async def test_since_the_run_before_only_outcomes_by_the_same_expectation_are_compared(
    folder, opened, monkeypatch
):
    workbench = await opened(folder)
    key = CaseId(SET, "a")
    for act, found in ((says("hi"), []), (says("no"), [("a", "PASSED", "FAILED")])):
        monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns(act).follow)
        workbench.runs.run_cases("a", [key])
        await workbench.runs.finished()
        assert changes(workbench) == found
        edit(workbench, folder, SET, case(**first_turn(final_response=message("other"))))
        await workbench.outcomes.rescored([])
        assert workbench.outcomes.status(key) == "FAILED"
        assert changes(workbench) == []
        workbench.editing.undo()
        await workbench.outcomes.rescored([])
        assert changes(workbench) == found
    (log, *_) = workbench.agent.store.files()
    assert await workbench.outcomes.open_run(log, "run 1")
    assert changes(workbench) == []
    assert not any("Since" in line for line in page(workbench, SET))


async def test_what_changed_after_the_newest_run_is_said_of_a_case_that_failed_by_it(folder, opened, until):
    workbench = await opened(folder)
    key = CaseId(SET, "a")
    edit(workbench, folder, SET, case(**first_turn(final_response=message("no"))))
    await workbench.outcomes.rescored([])
    await until(lambda: workbench.outcomes.history(key) is not None)
    (line,) = (one for one in page(workbench, *key) if "History" in one)
    assert " ".join(line.split()) == "▸ History last passed run 1 since then case changed 1 run"


async def test_an_opened_run_has_the_history_until_then(folder, opened, monkeypatch, until):
    workbench = await opened(folder)
    key = CaseId(SET, "a")
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns(says("no")).follow)
    workbench.runs.run_all()
    await workbench.runs.finished()
    await until(lambda: (past := workbench.outcomes.history(key)) and len(past.points) == 2)
    (log, *_) = workbench.agent.store.files()
    assert await workbench.outcomes.open_run(log, "run 1")
    assert [point.path for point in workbench.outcomes.history(key).points] == [log]


async def test_the_page_of_an_opened_run_says_what_it_is_scored_by(folder, opened):
    workbench = await opened(folder)
    key = CaseId(SET, "a")
    (log,) = workbench.agent.store.files()
    assert await workbench.outcomes.open_run(log, "run 1")
    assert page(workbench, *key)[0].startswith(" ✓ PASSED   2/2")
    edit(workbench, folder, SET, case(**first_turn(final_response=message("no"))))
    await workbench.outcomes.rescored([])
    assert page(workbench, *key)[0] == " ✗ FAILED   rescored   by case and config of now"
    await workbench.editing.save_all()
    workbench.outcomes.leave_previous_run()
    assert await workbench.outcomes.open_run(log, "run 1")
    assert page(workbench, *key)[0] == " ✓ PASSED   case changed after run 1: as scored then"


@pytest.mark.parametrize(
    ("ran", "now", "reasons"),
    [
        ("", 'tools = "stub"', ("tool mode",)),
        ('tools = "stub"', "", ("tool mode",)),
        ('tools = "record"', "", ()),
        ('record = "replay"', "", ("record mode",)),
        ("", 'record = "auto"', ("record mode",)),
        ('record = "record"', 'record = "auto"', ()),
        ('record = "record"', 'record = "replay"\ntools="live"', ()),
        ('record = "auto"', 'record = "replay"', ()),
        ("", PRICED, ("prices",)),
        (PRICED, PRICED, ()),
    ],
)
@pytest.mark.parametrize("between", [False, True])
async def test_a_result_of_a_run_with_another_mode_or_price_is_stale(
    folder, opened, ran, now, reasons, between, monkeypatch
):
    write(folder, CONFIG, config(METRICS | {"cost_usd": 1.0}))
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    settings = folder / "pyproject.toml"
    settings.write_text(f"[tool.evaltui]\n{ran}\n")
    workbench = await opened(folder)
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert await stand(workbench) == "fresh"
    settings.write_text(f"[tool.evaltui]\n{now}\n")
    if between:
        await workbench.close()
        workbench = await opened(folder)
    else:
        await workbench.open()
    found = workbench.outcomes.freshness(CaseId(SET, "a"))
    # The file is one of the agent's, too.
    assert tuple(one for one in found.reasons if one != "pyproject.toml") == reasons


async def test_settings_of_the_project_that_change_are_followed(folder, opened, until):
    """Those that no run would begin with make results stale, too."""
    workbench, key = await opened(folder), CaseId(SET, "a")
    workbench.following.start()
    await until(lambda: workbench.following.version)
    for text, reasons in (
        ("[tool.evaltui]\ntools = 7\n", ("settings",)),
        ('[tool.evaltui]\ntools = "stub"\n', ("tool mode",)),
        ("[tool.evaltui]\n", ()),
    ):
        (folder.parent / "pyproject.toml").write_text(text)
        await until(lambda reasons=reasons: workbench.outcomes.freshness(key).reasons == reasons)
        assert ("stale" in page(workbench, *key)[0]) is bool(reasons)


LISTINGS = {
    "glob": "FOLDER.glob('*.md')",
    "walk": "os.walk(FOLDER)",
    "listdir": "os.listdir(FOLDER)",
    "relative": "os.scandir(os.path.relpath(FOLDER))",
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
async def test_a_folder_elsewhere_that_the_agent_lists_counts(
    write_agent, write_set, listing, open_workbench
):
    agent = write_agent(
        "import os\nfrom pathlib import Path\n\nFOLDER = Path(__file__).parents[1] / 'knowledge'\n\n"
        f"def root_agent(message, session):\n    list({listing})\n"
        "    (FOLDER.parent / 'kept').mkdir(exist_ok=True)\n"
        "    os.listdir(FOLDER.parent / 'kept'), os.listdir(FOLDER.parent)\n"
        "    (FOLDER.parent / 'kept' / f'{len(message)}.txt').write_text(message)\n    return message\n"
    )
    (agent.parent / "pyproject.toml").write_text('[project]\nname = "desk"\n')
    folder = agent.parent / "knowledge"
    folder.mkdir()
    (folder / "refunds.md").write_text("30 days")
    key = CaseId(write_set(agent, a=("hi", "hi")).name, "a")
    workbench = await open_workbench(agent)
    workbench.runs.run_all()
    await workbench.runs.finished()
    await workbench.open()
    assert workbench.outcomes.freshness(key).state == "fresh"
    new = folder / "returns.md"
    for change, reasons in ((lambda: new.write_text("14 days"), ("../knowledge",)), (new.unlink, ())):
        change()
        await workbench.open()
        assert workbench.outcomes.freshness(key).reasons == reasons
        again = await open_workbench(agent)
        await again.outcomes.restore()
        assert again.outcomes.freshness(key).reasons == reasons
        await again.close()


async def test_a_run_of_all_sets_has_those_that_others_have_added(folder, opened, monkeypatch):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    workbench = await opened(folder)
    (folder / "t.evalset.json").write_text(json.dumps({"eval_set_id": "t", "eval_cases": [case("new")]}))
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert {case.path for case, _ in workbench.outcomes.results.all()} == {SET, "t.evalset.json"}
    assert not workbench.outcomes.counts()["NOT_RUN"]


async def test_data_that_the_agent_wrote_in_a_cancelled_run_makes_nothing_stale(
    write_agent, write_set, until, open_workbench
):
    agent = write_agent(
        "import asyncio\nfrom pathlib import Path\n\nasync def root_agent(message, session):\n"
        "    Path(__file__).with_name('notes.txt').write_text(message)\n"
        "    await asyncio.sleep(0 if message == 'hi' else 60)\n    return message\n"
    )
    path = write_set(agent, a=("hi", "hi"), b=("wait", "wait"))
    workbench = await open_workbench(agent)
    workbench.runs.run_all()
    await until(lambda: workbench.outcomes.status(CaseId(path.name, "a")) == "PASSED")
    await until(lambda: (agent / "notes.txt").read_text() == "wait")
    workbench.runs.cancel()
    await workbench.runs.finished()
    await workbench.open()
    assert workbench.outcomes.freshness(CaseId(path.name, "a")).state == "fresh"


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize(
    ("before", "access"),
    [(None, "FACTS.exists() or FACTS.write_text(message)"), ("hi", "FACTS.open('r+').close()")],
    ids=["written before", "opened for update"],
)
async def test_a_file_that_the_agent_does_not_write_in_a_run_counts(
    write_agent, write_set, until, before, access, followed, open_workbench
):
    agent = write_agent(
        "from pathlib import Path\n\nFACTS = Path(__file__).parents[1] / 'facts' / 'facts.json'\n\n"
        f"def root_agent(message, session):\n    {access}\n    return FACTS.read_text()\n"
    )
    facts = agent.parent / "facts" / "facts.json"
    facts.parent.mkdir()
    if before:
        facts.write_text(before)
    key = CaseId(write_set(agent, a=("hi", "hi")).name, "a")
    workbench = await open_workbench(agent)
    if followed:
        workbench.following.start()
        await until(lambda: workbench.following.version)
    for _ in range(2):
        workbench.runs.run_all()
        await workbench.runs.finished()
        await workbench.open()
        assert workbench.outcomes.freshness(key).state == "fresh"
    facts.write_text("ho")
    if followed:
        await until(lambda: workbench.outcomes.is_stale(key))
    again = Workbench(agent)
    await again.outcomes.restore()
    for bench in (workbench, again):
        await bench.open()
        await bench.outcomes.restore()
        assert bench.outcomes.freshness(key).reasons == ("../facts/facts.json",)
        facts.write_text("hi")
        await bench.open()
        assert bench.outcomes.freshness(key).state == "fresh"
        facts.write_text("ho")
        await bench.open()
        assert bench.outcomes.is_stale(key)
        await bench.close()


async def test_a_case_of_the_same_id_elsewhere_is_not_the_one_that_was_run(folder, opened):
    write(folder, SET, None)
    elsewhere = {"eval_set_id": "u", "eval_cases": [case("a", **first_turn(user_content=message("ho")))]}
    (folder / "u.evalset.json").write_text(json.dumps(elsewhere))
    workbench = await opened(folder)
    assert workbench.outcomes.counts() == {"PASSED": 1, "NOT_RUN": 1}
