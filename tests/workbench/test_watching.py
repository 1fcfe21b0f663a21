"""What follows from a save, with real files and real processes of the agent."""

from __future__ import annotations

import json
import textwrap
from contextlib import asynccontextmanager

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.agent import watch
from evaltui.workbench.files.saves import ReactionStep
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.state import Selection, Stage
from evaltui.workbench.workbench import Workbench

AGENT = """
    from pathlib import Path

    from my_agent.prompts import GREETING

    PROMPT = (Path(__file__).parent / "prompt.txt").read_text()

    def root_agent(message, session):
        return f"{GREETING} {PROMPT} {message}"
"""
# The same, known to ask no model.
SCRIPTED = """
    from pathlib import Path

    from evaltui import Agent, Rule, ScriptedModel
    from my_agent.prompts import GREETING

    PROMPT = (Path(__file__).parent / "prompt.txt").read_text()

    def greet(situation):
        return f"{GREETING} {PROMPT} {situation.message}"

    root_agent = Agent(name="greeter", model=ScriptedModel([Rule(user=".", reply=greet)]))
"""


@pytest.fixture
def greeter(write_agent, write_set):
    """An agent that imports its words and reads its prompt, with a case that passes and two that do not."""
    folder = write_agent(AGENT, prompts='GREETING = "hello"\n')
    (folder / "prompt.txt").write_text("dear")
    write_set(
        folder,
        good=("you", "hello dear you"),
        other=("me", "welcome dear me"),
        third=("us", "hello old us"),
    )
    return folder


@asynccontextmanager
async def watched(folder, **options):
    workbench = Workbench(folder, **options)
    await workbench.open()
    workbench.watch.start()
    await workbench.watch.ready()
    try:
        yield workbench
    finally:
        await workbench.close()


async def all_run(workbench, until):
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)


def statuses(workbench):
    return {
        key.eval_id: ("old " if workbench.outcomes.is_stale(key) else "") + workbench.outcomes.status(key)
        for key in workbench.sets.every_case()
    }


def done(workbench, *changed):
    """Whether what follows from these changes is over."""
    last = workbench.watch.last
    if last is None or last.step is not ReactionStep.DONE:
        return False
    return set(last.changed) == set(changed) and not workbench.runs.is_running


FIRST = {"good": "PASSED", "other": "FAILED", "third": "FAILED"}


async def test_a_prompt_and_a_module_that_is_new_run_with_what_they_hold_now(greeter, until):
    (greeter / "agent.py").write_text(textwrap.dedent(SCRIPTED))
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        assert statuses(workbench) == FIRST
        (greeter / "prompt.txt").write_text("old")
        await until(lambda: done(workbench, "prompt.txt"))
        assert statuses(workbench) == {"good": "FAILED", "other": "FAILED", "third": "PASSED"}
        last = workbench.watch.last
        assert (last.run, last.cases, last.calls.live) == (2, 3, 0)
        assert 0 < last.seconds < 60
        (greeter / "tools.py").write_text('GREETING = "welcome"\n')
        (greeter / "prompts.py").write_text("from my_agent.tools import GREETING\n")
        (greeter / "prompt.txt").write_text("dear")
        await until(lambda: done(workbench, "prompt.txt", "prompts.py", "tools.py"))
        assert statuses(workbench) == {"good": "FAILED", "other": "PASSED", "third": "FAILED"}
        assert workbench.watch.waiting().cases == frozenset()


async def test_broken_code_keeps_the_last_results_and_the_next_save_mends_it(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        (greeter / "prompts.py").write_text('GREETING = "hi\n')
        await until(lambda: workbench.watch.last and workbench.watch.last.step is ReactionStep.BROKEN)
        error = workbench.agent.error
        assert (error.type, error.where) == ("SyntaxError", "prompts.py:1")
        assert statuses(workbench) == {eval_id: f"old {status}" for eval_id, status in FIRST.items()}
        assert workbench.runs.current.number == 1
        (greeter / "prompts.py").write_text('GREETING = "hello"\n')
        await until(lambda: done(workbench, "prompts.py"))
        assert workbench.agent.error is None
        assert statuses(workbench) == FIRST


async def test_a_file_that_is_emptied_before_it_is_written_is_given_a_moment(greeter, until):
    async with watched(greeter) as workbench:
        steps = []
        await all_run(workbench, until)
        workbench.messages.subscribe(
            lambda _: steps.append(workbench.watch.last and workbench.watch.last.step), WorkbenchMessage
        )
        text = (greeter / "agent.py").read_text()
        (greeter / "agent.py").write_text("")
        await until(lambda: workbench.agent.code_version == 1)
        (greeter / "agent.py").write_text(f"{text}\n# saved\n")
        await until(lambda: done(workbench, "agent.py"))
        assert ReactionStep.BROKEN not in steps
        assert statuses(workbench) == FIRST


# It answers only once it is as its user wants it.
UNFINISHED = """
    import time
    from pathlib import Path

    def root_agent(message, session):
        prompt = Path(__file__).with_name("prompt.txt").read_text()
        while prompt.startswith("unfinished"):
            time.sleep(0.01)
        return f"{prompt} {message}"
"""


async def test_five_saves_in_a_row_are_one_finished_run(write_agent, write_set, until, monkeypatch):
    monkeypatch.setattr(watch, "_SERIES_SECONDS", 60.0)
    monkeypatch.setattr(watch, "_QUIET_AFTER_SEVERAL", 1.0)
    folder = write_agent(UNFINISHED)
    prompt = folder / "prompt.txt"
    prompt.write_text("dear")
    write_set(folder, one=("you", "old you"))
    async with watched(folder) as workbench:
        await all_run(workbench, until)
        runs = [workbench.runs.current]
        workbench.messages.subscribe(
            lambda _: runs[-1] is workbench.runs.current or runs.append(workbench.runs.current),
            WorkbenchMessage,
        )
        await saved_in_a_row(workbench, prompt, until)
        # The first save may have begun one, which the second one has ended.
        assert [run.stage for run in runs[1:]] in (
            [Stage.FINISHED],
            [Stage.CANCELLED, Stage.FINISHED],
        )
        assert statuses(workbench) == {"one": "PASSED"}


async def test_where_saves_came_in_a_row_the_next_ones_are_waited_for_and_the_last_one_gets_the_ready_host(
    write_agent, write_set, until, monkeypatch
):
    monkeypatch.setattr(watch, "_SERIES_SECONDS", 60.0)
    monkeypatch.setattr(watch, "_QUIET_AFTER_SEVERAL", 1.0)
    folder = write_agent(UNFINISHED)
    prompt = folder / "prompt.txt"
    prompt.write_text("dear")
    write_set(folder, one=("you", "old you"))
    async with watched(folder) as workbench:
        await all_run(workbench, until)
        await saved_in_a_row(workbench, prompt, until)
        await workbench.agent.warm_hosts.ready()
        runs, started, start_host = [workbench.runs.current], [], workbench.agent.start_host
        workbench.messages.subscribe(
            lambda _: runs[-1] is workbench.runs.current or runs.append(workbench.runs.current),
            WorkbenchMessage,
        )
        monkeypatch.setattr(workbench.agent, "start_host", lambda: started.append(1) or start_host())
        version = workbench.agent.code_version
        with monkeypatch.context() as quiet_before:
            # The first one of those that follow.
            quiet_before.setattr(watch, "_SERIES_SECONDS", 0.0)
            quiet_before.setattr(watch, "_QUIET_AFTER_SEVERAL", 60.0)
            prompt.write_text("unfinished")
            await until(lambda: workbench.agent.code_version > version)
        # Another text than before, or its result would be valid again.
        await saved_in_a_row(workbench, prompt, until, "Old")
        assert [run.stage for run in runs[1:]] == [Stage.FINISHED]
        assert len(started) == 1


async def saved_in_a_row(workbench, prompt, until, last="old"):
    for number in range(4):
        version = workbench.agent.code_version
        prompt.write_text(f"unfinished {number}")
        await until(lambda version=version: workbench.agent.code_version > version)
    prompt.write_text(last)
    await until(lambda: done(workbench, "prompt.txt") and statuses(workbench) == {"one": "PASSED"})


async def test_a_newer_save_ends_the_run_of_the_older_one(write_agent, write_set, until):
    folder = write_agent("""
        import time

        def root_agent(message, session):
            while True:
                time.sleep(0.01)
    """)
    write_set(folder, one=("hi", "hi"), two=("hi", "hi"))
    async with watched(folder) as workbench:
        workbench.runs.run_all()
        await until(lambda: len(workbench.runs.current.running) == 2)
        (folder / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
        await until(lambda: done(workbench, "agent.py"))
        # Nobody has seen what comes of the other case either.
        assert statuses(workbench) == {"one": "PASSED", "two": "PASSED"}


async def test_what_may_ask_a_model_waits_until_it_is_asked_for(write_agent, write_set, until):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    write_set(folder, good=("hi", "hi"), fine=("ho", "ho"), bad=("hi", "ho"))
    async with watched(folder) as workbench:
        await all_run(workbench, until)
        (folder / "agent.py").write_text("def root_agent(message, session):\n    return 'ho'\n")
        await until(lambda: done(workbench, "agent.py"))
        assert statuses(workbench) == {"good": "FAILED", "fine": "old PASSED", "bad": "PASSED"}
        waiting = workbench.watch.waiting()
        assert [key.eval_id for key in waiting.cases] == ["fine"]
        assert not waiting.calls.is_known
        workbench.watch.run_waiting()
        await until(lambda: not workbench.runs.is_running)
        assert statuses(workbench)["fine"] == "PASSED"
        assert not workbench.watch.waiting().cases


PAID = """
    from google.genai import types

    from evaltui import Agent
    from evaltui.agents.native.models import ModelResponse

    class Paid:
        name = "paid"

        async def generate(self, request, on_text):
            said = request.contents[-1].parts[0].text
            return ModelResponse([types.Part(text=said)])

    root_agent = Agent(name="parrot", model=Paid(), instruction="repeat it")
"""


async def test_recorded_answers_are_run_again_until_something_else_is_asked(write_agent, write_set, until):
    folder = write_agent(PAID)
    write_set(folder, one=("hi", "hi"), two=("ho", "ho"), three=("hey", "hey"))
    async with watched(folder, options={"record": "auto"}) as workbench:
        for _ in range(2):
            await all_run(workbench, until)
        assert {
            scored.calls.replayed
            for _, scored in workbench.outcomes.results.of(workbench.sets.listed[0].case_path)
        } == {1}
        text = (folder / "agent.py").read_text()
        (folder / "agent.py").write_text(text + "\n# nothing else is asked\n")
        await until(lambda: done(workbench, "agent.py") and not workbench.watch.waiting().cases)
        assert statuses(workbench) == {"one": "PASSED", "two": "PASSED", "three": "PASSED"}
        assert workbench.watch.last.calls.live == 0
        workbench.navigation.select(Selection(workbench.sets.listed[0].case_path, "two"))
        (folder / "agent.py").write_text(text.replace("repeat it", "repeat it exactly"))
        await until(lambda: done(workbench, "agent.py") and workbench.runs.current.code == 2)
        assert statuses(workbench) == {"one": "old PASSED", "two": "PASSED", "three": "old PASSED"}
        assert workbench.outcomes.get(CaseId(workbench.sets.listed[0].case_path, "two")).calls.live == 1


def edit(path, **changes):
    """Change cases of a set from outside: id to a function that gets the case."""
    data = json.loads(path.read_text())
    for eval_case in data["eval_cases"]:
        if eval_case["eval_id"] in changes:
            changes[eval_case["eval_id"]](eval_case["conversation"][0])
    path.write_text(json.dumps(data))


def say(text):
    return lambda turn: turn["user_content"]["parts"].__setitem__(0, {"text": text})


def expect(text):
    return lambda turn: turn["final_response"]["parts"].__setitem__(0, {"text": text})


async def test_of_a_set_only_the_cases_that_changed_are_run(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        path = workbench.sets.listed[0].path
        edit(path, other=say("them"), third=expect("hello dear us"))
        await until(lambda: done(workbench, path.name))
        assert workbench.watch.last.cases == 1
        assert workbench.runs.current.number == 2
        assert [key.eval_id for key in workbench.runs.current.done] == ["other"]
        assert statuses(workbench) == {"good": "PASSED", "other": "FAILED", "third": "PASSED"}


async def test_what_is_expected_is_scored_again_without_the_agent(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        path = workbench.sets.listed[0].path
        edit(path, third=expect("hello dear us"))
        await until(lambda: done(workbench, path.name))
        assert (workbench.watch.last.rescored, workbench.runs.current.number) == (1, 1)
        assert statuses(workbench)["third"] == "PASSED"
        (greeter / "test_config.json").write_text('{"criteria": {"response_match_score": 0.1}}')
        await until(lambda: done(workbench, "test_config.json"))
        assert (workbench.watch.last.rescored, workbench.runs.current.number) == (3, 1)
        assert statuses(workbench)["other"] == "PASSED"


async def test_what_was_scored_again_before_the_save_is_heard_of_is_counted(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        path = workbench.sets.listed[0].path
        for answer, status in (("hello dear us", "PASSED"), ("no", "FAILED")):
            workbench.watch.last = None
            edit(path, third=expect(answer))
            # As at the end of a run in this moment.
            await workbench.open()
            await workbench.outcomes.rescored([])
            assert statuses(workbench)["third"] == status
            await until(lambda: done(workbench, path.name))
            assert workbench.watch.last.rescored == 1


async def test_unsaved_edits_outlive_what_is_changed_outside(greeter, until):
    async with watched(greeter) as workbench:
        path = workbench.sets.listed[0].path
        workbench.editing.do("edit", path, lambda eval_set: eval_set.case(0).turn(0).answer.set_text("mine"))
        edit(path, other=expect("theirs"))
        await until(lambda: done(workbench, path.name))
        draft = workbench.editing.open_file(path)
        answers = [
            case["conversation"][0]["final_response"]["parts"][0]["text"]
            for case in draft.document.value["eval_cases"]
        ]
        assert answers == ["mine", "theirs", "hello old us"]
        assert draft.dirty
        edit(path, good=expect("theirs as well"))
        await until(lambda: workbench.editing.conflicts)
        assert draft.document.value["eval_cases"][0]["conversation"][0]["final_response"]["parts"] == [
            {"text": "mine"}
        ]


async def test_what_is_saved_here_runs_the_cases_in_which_something_else_is_said(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        path = workbench.sets.listed[0].path
        workspace = workbench.sets.workspace
        workbench.editing.do("edit", path, lambda eval_set: eval_set.case(0).turn(0).user.set_text("all"))
        assert await workbench.editing.save(path)
        await until(lambda: done(workbench, path.name))
        assert [key.eval_id for key in workbench.runs.current.done] == ["good"]
        assert statuses(workbench)["good"] == "FAILED"
        assert workbench.sets.workspace is not workspace


async def test_sets_come_and_go(greeter, write_set, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        write_set(greeter, "more", extra=("hi", "hi"))
        await until(lambda: len(workbench.sets.listed) == 2)
        assert workbench.outcomes.status(CaseId(workbench.sets.listed[1].case_path, "extra")) == "NOT_RUN"
        workbench.sets.listed[1].path.unlink()
        await until(lambda: len(workbench.sets.listed) == 1)
        assert statuses(workbench) == FIRST


async def test_a_set_that_cannot_be_read_keeps_its_results(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        path = workbench.sets.listed[0].path
        text = path.read_text()
        path.write_text(text[: len(text) // 2])
        await until(lambda: not list(workbench.sets.every_case()))
        path.write_text(text)
        await until(lambda: list(workbench.sets.every_case()))
        assert all(workbench.outcomes.get(case) for case in workbench.sets.every_case())
        # While its config is being read, they may be old.
        await until(lambda: statuses(workbench) == FIRST)


async def test_code_that_changed_before_watching_began_makes_results_old(greeter, until):
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        workbench.watch.switch()
        assert not workbench.watch.on
        (greeter / "prompt.txt").write_text("old")
        workbench.watch.switch()
        await workbench.watch.ready()
        assert statuses(workbench) == {eval_id: f"old {status}" for eval_id, status in FIRST.items()}


async def test_what_the_agent_has_others_write_does_not_run_it_for_ever(write_agent, write_set, until):
    folder = write_agent("""
        import subprocess
        from pathlib import Path

        def root_agent(message, session):
            subprocess.run("date +%N > memory.json", shell=True, cwd=Path(__file__).parent)
            return message
    """)
    write_set(folder, bad=("hi", "ho"))
    async with watched(folder) as workbench:
        await all_run(workbench, until)
        await until(
            lambda: (
                workbench.messages.notice
                and "memory.json changes in every run" in workbench.messages.notice.text
            )
        )
        await until(lambda: not workbench.runs.is_running)


async def test_what_starts_no_run_makes_results_stale(greeter, until, monkeypatch):
    monkeypatch.setattr(watch, "_MAX_OWN_WRITES", 0)
    monkeypatch.setattr(watch, "_SOON_SECONDS", 600)
    async with watched(greeter) as workbench:
        await all_run(workbench, until)
        (greeter / "prompt.txt").write_text("old")
        await until(lambda: statuses(workbench)["good"] == "old PASSED")


async def test_the_selected_case_is_run_although_it_passed_or_never_ran(write_agent, write_set, until):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    write_set(folder, good=("hi", "hi"), fine=("ho", "ho"))
    async with watched(folder) as workbench:
        workbench.navigation.select(Selection(workbench.sets.listed[0].case_path, "fine"))
        (folder / "agent.py").write_text("def root_agent(message, session):\n    return 'ho'\n")
        await until(lambda: done(workbench, "agent.py"))
        assert statuses(workbench) == {"good": "NOT_RUN", "fine": "PASSED"}


READER = """
    from pathlib import Path

    HERE = Path(__file__).parent

    def root_agent(message, session):
        (HERE / "memory.md").write_text(message)
        return (HERE / "DATA" / f"{message}.json").read_text()
"""


@pytest.fixture(params=["../data", "recordings"])
def data(request):
    """Where the agent's data is, as seen from its folder: files of neither folder count unless it opens
    them."""
    return request.param


@pytest.fixture
def reader(write_agent, write_set, data):
    """An agent that reads a file of its data for each case, and writes one in its folder."""
    folder = write_agent(READER.replace("DATA", data))
    (folder / data).mkdir()
    for name in ("you", "me"):
        (folder / data / f"{name}.json").write_text("hello")
    write_set(folder, good=("you", "hello"), other=("me", "hello"))
    return folder


@pytest.mark.parametrize("how", ["followed", "watched", "restored"])
async def test_a_file_of_the_project_that_any_run_has_read_makes_results_stale(
    reader, data, how, until, open_workbench
):
    workbench = await open_workbench(reader)
    if how == "restored":
        await all_run(workbench, until)
        await workbench.close()
        workbench = await open_workbench(reader)
    if how == "watched":
        workbench.watch.start()
        await workbench.watch.ready()
    else:
        workbench.following.start()
        await until(lambda: workbench.following.version)
    if how != "restored":
        await all_run(workbench, until)
        workbench.runs.run_cases("one", [key for key in workbench.sets.every_case() if "other" in key])
        await until(lambda: workbench.runs.current.number == 2 and not workbench.runs.is_running)
    await until(lambda: statuses(workbench) == {"good": "PASSED", "other": "PASSED"})
    (reader / data / "you.json").write_text("good evening")
    await until(lambda: statuses(workbench)["good"] == "old PASSED")
    (key, _) = workbench.sets.every_case()
    assert workbench.outcomes.freshness(key).reasons == (f"{data}/you.json",)


async def test_a_file_that_a_run_has_read_is_compared_by_a_reload_too(reader, data, until, open_workbench):
    workbench = await open_workbench(reader)
    workbench.agent.followed = True
    await all_run(workbench, until)
    (reader / data / "you.json").write_text("good evening")
    await workbench.open()
    assert statuses(workbench) == {"good": "old PASSED", "other": "old PASSED"}
