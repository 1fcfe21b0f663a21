"""Agents that behave badly, in real child processes: the guilty case alone is an ERROR."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec

import psutil
import pytest
from host_processes import descendants
from waiting import until

from evaltui import EvalCase, EvalConfig, EvalSet, Invocation, RunResult, Status, evaluate
from evaltui.agents.errors import HostLostError
from evaltui.project.agent_address import AgentAddress
from evaltui.project.configs import ConfigInUse
from evaltui.runner import execution
from evaltui.runner.execution import run_plan
from evaltui.runner.host import import_limit
from evaltui.runner.plan import AgentBroken, CaseStarted, Happened, RunPlan, SetPlan, Update
from evaltui.runner.starting import HostSettings, start_host

pytestmark = pytest.mark.usefixtures("fresh_hosts")

TEXT_ONLY = EvalConfig(criteria={"response_match_score": 0.9})


def turn(says: str, answer: str | None = None) -> Invocation:
    return Invocation.model_validate(
        {
            "user_content": {"role": "user", "parts": [{"text": says}]},
            "final_response": {"role": "model", "parts": [{"text": answer or says}]},
        }
    )


def case(eval_id: str, *turns: Invocation, **more: object) -> EvalCase:
    return EvalCase.model_validate({"eval_id": eval_id, "conversation": list(turns), **more})


def cases_saying(*messages: str) -> EvalSet:
    cases = [case(f"case_{number}", turn(says)) for number, says in enumerate(messages)]
    return EvalSet(eval_set_id="basics", eval_cases=cases)


def statuses(result: RunResult) -> list[Status]:
    return [one.status for one in result.cases]


CRASHES = {
    "os._exit": "os._exit(7)",
    "os._exit(0)": "os._exit(0)",
    "segfault": "ctypes.string_at(0)",
    "sys.exit": "sys.exit('bye')",
    "sys.exit in a task": "await asyncio.create_task(leave())",
    "exception": "raise RuntimeError('Reauthentication is needed')",
    "unserialisable state": "session.state['lock'] = threading.Lock()",
    "unserialisable result": "return object()",
    "closed channel": "os.closerange(3, 4096)",
}

CRASHING = """
    import asyncio, ctypes, os, sys, threading

    async def leave():
        sys.exit("bye")

    async def root_agent(message, session):
        if message == "crash":
            {crash}
        await asyncio.sleep(0.05)
        return message
"""


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
async def test_a_crash_is_an_error_of_the_guilty_case_alone(write_agent, crash):
    agent = write_agent(CRASHING.format(crash=crash))
    sets = cases_saying("one", "crash", "two", "three", "four", "five")
    result = await evaluate(agent, sets, TEXT_ONLY, parallel=3)
    assert statuses(result) == [Status.PASSED, Status.ERROR, *[Status.PASSED] * 4]
    assert result.status is Status.ERROR
    assert result.cases[1].error is not None
    assert result.cases[1].error.message


async def test_an_exception_keeps_its_message_traceback_and_the_users_frame(write_agent):
    agent = write_agent(CRASHING.format(crash=CRASHES["exception"]))
    result = await evaluate(agent, cases_saying("crash"), TEXT_ONLY)
    error = result.cases[0].error
    assert error is not None
    assert (error.type, error.message) == ("RuntimeError", "Reauthentication is needed")
    assert error.where.startswith("agent.py:")
    assert "agent.py" in error.traceback
    assert "evaltui" not in error.traceback.replace(str(agent), "")


HANGS = {
    "await": "await asyncio.sleep(1000)",
    "await in a task": "await asyncio.gather(asyncio.sleep(1000))",
    "python loop": "while True: pass",
    "blocking call": "time.sleep(1000)",
    "loop in C": "sum(itertools.repeat(1))",
    "swallowed cancel": "await stubborn()",
}

HANGING = """
    import asyncio, itertools, time

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass

    async def root_agent(message, session):
        if message == "hang":
            {hang}
        return message
"""


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
async def test_a_hang_ends_at_its_time_out_and_says_where(write_agent, hang):
    agent = write_agent(HANGING.format(hang=hang))
    result = await evaluate(agent, cases_saying("one", "hang", "two"), TEXT_ONLY, timeout=1, parallel=1)
    assert statuses(result) == [Status.PASSED, Status.ERROR, Status.PASSED]
    error = result.cases[1].error
    assert error is not None
    assert error.type == "TimeoutError"
    assert "no response within 1 s" in error.message
    assert error.where.startswith("agent.py:") or hang == HANGS["swallowed cancel"]


ENDLESS = """
    async def root_agent(message, session):
        if message == "endless":
            while True:
                yield {what}
        else:
            yield message
"""


@pytest.mark.parametrize("what", ["'again'", "'again' * 500_000"], ids=["many", "big"])
async def test_an_agent_that_never_stops_talking_is_stopped(write_agent, what):
    agent = write_agent(ENDLESS.format(what=what))
    turns: list[float] = []
    running = asyncio.create_task(
        evaluate(agent, cases_saying("one", "endless", "two"), TEXT_ONLY, parallel=1)
    )
    while not running.done():
        turns.append(time.monotonic())
        await asyncio.sleep(0.01)
    result = await running
    assert statuses(result) == [Status.PASSED, Status.ERROR, Status.PASSED]
    error = result.cases[1].error
    assert error is not None
    assert error.type == "TooManyEventsError"
    assert "endless loop" in error.message
    assert len(turns) > 10, "nothing else had its turn meanwhile"


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("hang", ["while True: pass", "time.sleep(1000)"])
async def test_a_hang_in_a_tool_is_found_in_its_thread(write_agent, hang):
    agent = write_agent(f"""
        import time

        def root_agent(message, session):
            if message == "hang":
                {hang}
            return message
    """)
    result = await evaluate(agent, cases_saying("hang", "one"), TEXT_ONLY, timeout=1, parallel=1)
    assert statuses(result) == [Status.ERROR, Status.PASSED]
    error = result.cases[0].error
    assert error is not None
    assert error.where.startswith("agent.py:")


@pytest.mark.skipif(find_spec("google.adk") is not None, reason="google-adk is installed")
async def test_an_adk_agent_without_google_adk_says_what_to_install(write_agent):
    agent = write_agent("from google.adk.agents import LlmAgent\n\nroot_agent = LlmAgent(name='x')\n")
    result = await evaluate(agent, cases_saying("one"), TEXT_ONLY)
    error = result.cases[0].error
    assert error is not None
    assert "-m pip install google-adk" in error.message
    assert error.traceback == ""


@pytest.mark.parametrize("hang", [HANGS["await"], HANGS["loop in C"]], ids=["await", "loop in C"])
async def test_cancelling_ends_every_process(write_agent, hang):
    agent = write_agent(HANGING.format(hang=hang))
    running = asyncio.Event()

    def watch(update: Update) -> None:
        if isinstance(update, CaseStarted):
            running.set()

    sets = cases_saying("hang", "hang")
    plan = RunPlan(
        AgentAddress(agent),
        (SetPlan("basics", "basics", tuple(sets.eval_cases), ConfigInUse(None, TEXT_ONLY)),),
    )
    task = asyncio.create_task(run_plan(plan, watch))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert descendants() == []


LEAVING_BEHIND = """
    import os, subprocess, time
    from pathlib import Path

    def daemon(note):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                note.write_text(str(os.getpid()))
                os.execve("/bin/sleep", ["sleep", "1000"], {})
            os._exit(0)
        os.wait()

    def root_agent(message, session):
        plain = subprocess.Popen(["sleep", "1000"])
        apart = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={})
        note = Path(message)
        daemon(note)
        while not note.exists() or not note.read_text():
            time.sleep(0.01)
        return f"{plain.pid} {apart.pid} {note.read_text()}"
"""


async def test_what_an_agent_leaves_behind_is_ended_too(write_agent, tmp_path):
    agent = write_agent(LEAVING_BEHIND)
    result = await evaluate(agent, cases_saying(str(tmp_path / "note")), TEXT_ONLY)
    actual = result.cases[0].repeats[0].actual[0].final_response
    assert actual is not None
    assert actual.parts is not None
    left = [int(pid) for pid in (actual.parts[0].text or "").split()]
    assert len(left) == 3
    assert not any(map(is_running, left))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has real-time signals and subreapers")
@pytest.mark.parametrize(
    ("then", "says"),
    [
        pytest.param(
            "os.kill(os.getpid(), signal.SIGRTMIN + 5)",
            f"was ended by signal {signal.SIGRTMIN + 5}" if sys.platform == "linux" else "",
            id="a real-time signal",
        ),
        pytest.param(
            "os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)",
            "was ended by SIGKILL",
            id="its guard killed",
        ),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGRTMIN)",
            "was ended by SIGRTMIN",
            id="the first of them",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "os.killpg(0, signal.SIGTERM)",
            "was ended by SIGTERM",
            id="its group",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "os.kill(os.getppid(), signal.SIGTERM); time.sleep(1000)",
            "was ended by SIGTERM",
            id="its guard ended",
            marks=pytest.mark.thorough,
        ),
    ],
)
async def test_an_agent_ended_by_a_signal_is_an_error_that_names_it(write_agent, then, says):
    agent = write_agent(f"""
        import os, signal, time

        def root_agent(message, session):
            if message == "end":
                {then}
            return message
    """)
    result = await evaluate(agent, cases_saying("one", "end"), TEXT_ONLY, parallel=1)
    assert statuses(result) == [Status.PASSED, Status.ERROR]
    assert result.cases[1].error is not None
    assert says in result.cases[1].error.message
    assert descendants() == []


async def test_everything_that_is_printed_becomes_console_lines(write_agent):
    agent = write_agent("""
        import ctypes, os, subprocess, sys

        print("while importing")

        def root_agent(message, session):
            print("from print")
            print("to stderr", file=sys.stderr)
            os.write(1, b"raw \\xff bytes\\n")
            ctypes.CDLL(None).puts(b"from C")
            ctypes.CDLL(None).fflush(None)
            subprocess.run(["echo", "from a child"])
            try:
                input()
            except EOFError:
                print("no input")
            return message
    """)
    lines: set[tuple[str, str]] = set()

    def watch(update: Update) -> None:
        if isinstance(update, Happened) and update.event.kind == "console":
            lines.add((update.event.data["source"], update.event.data["text"]))

    result = await evaluate(agent, cases_saying("one"), TEXT_ONLY, on_update=watch)
    assert result.status is Status.PASSED
    out = {text for source, text in lines if source == "stdout"}
    assert out >= {"while importing", "from print", "raw \\xff bytes", "from C", "from a child", "no input"}
    assert ("stderr", "to stderr") in lines


async def test_messages_of_any_size_and_numbers_that_json_lacks(write_agent):
    agent = write_agent("""
        def root_agent(message, session):
            session.state["nan"] = float("nan")
            return message * 500_000
    """)
    sets = EvalSet(
        eval_set_id="big",
        eval_cases=[case("one", turn("0123456789", "x"), final_session_state={"nan": "NaN"})],
    )
    result = await evaluate(agent, sets, EvalConfig())
    assert result.status is Status.PASSED
    answer = result.cases[0].repeats[0].actual[0].final_response
    assert answer is not None
    assert answer.parts is not None
    assert len(answer.parts[0].text or "") == 5_000_000


BROKEN = {
    "NameError": ("import os\n\nroot_agent = tols\n", "agent.py:3"),
    "SyntaxError": ("def f(:\n", "agent.py:1"),
    "ModuleNotFoundError": ("import no_such_module_here\n", "agent.py:1"),
    "SystemExit": ("import sys\nsys.exit(3)\n", "agent.py:2"),
    "AgentLoadError": ("x = 1\n", ""),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_broken_agent_code_shows_the_users_own_frame(write_agent, kind):
    source, where = BROKEN[kind]
    agent = write_agent(source)
    told: list[Update] = []
    result = await evaluate(agent, cases_saying("one", "two"), TEXT_ONLY, on_update=told.append)
    assert statuses(result) == [Status.ERROR, Status.ERROR]
    error = result.cases[0].error
    assert error is not None
    assert (error.type, error.where) == (kind, where)
    assert sum(isinstance(update, AgentBroken) for update in told) == 1


LATE_ERROR = """
    import time
    from pathlib import Path

    here = Path(__file__).parent
    (here / "imported").touch()
    while not (here / "cancelled").exists():
        time.sleep(0.01)
    raise ValueError("broken")
"""


async def test_a_broken_agent_that_nobody_waits_for_is_not_written_to_the_terminal(write_agent):
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unhandled.append(context))
    folder = write_agent(LATE_ERROR)
    started = start_host(HostSettings(AgentAddress(folder), 20.0))
    await until((folder / "imported").exists)
    started.loading.cancel()
    (folder / "cancelled").touch()
    await until(started.host.loaded.done)
    await started.end()
    del started
    gc.collect()
    assert unhandled == []


async def test_an_import_that_hangs_ends_by_the_time_out_of_a_case(write_agent, monkeypatch):
    monkeypatch.setattr("evaltui.runner.host.SHORTEST_IMPORT", 0.0)
    agent = write_agent("import time\ntime.sleep(1000)\n")
    result = await evaluate(agent, cases_saying("one"), TEXT_ONLY, timeout=1)
    error = result.cases[0].error
    assert error is not None
    assert "not imported within 1 s" in error.message
    assert error.where.startswith("agent.py:2")


def test_an_import_has_the_time_of_a_case_within_limits():
    assert [import_limit(timeout) for timeout in (1, 50, 300)] == [30, 50, 120]


REPLACES = """
    import asyncio, json, os
    {replaced}

    def root_agent(message, session):
        return message
"""


async def test_an_agent_that_replaces_functions_of_the_library_is_heard(write_agent):
    replaced = "json.loads = json.dumps = os.read = os.write = os._exit = lambda *args, **kwargs: None"
    result = await evaluate(
        write_agent(REPLACES.format(replaced=replaced)), cases_saying("one", "two"), TEXT_ONLY, timeout=5
    )
    assert statuses(result) == [Status.PASSED, Status.PASSED]


async def test_a_host_that_never_answers_ends_by_the_time_out(write_agent, monkeypatch):
    monkeypatch.setattr("evaltui.runner.host._GRACE", 0.01)
    deaf = "asyncio.BaseEventLoop.call_soon_threadsafe = lambda *args, **kwargs: None"
    agent = AgentAddress(write_agent(REPLACES.format(replaced=deaf)))
    started = start_host(HostSettings(agent, 20.0))
    turn = {"role": "user", "parts": [{"text": "one"}]}
    request = {"op": "run", "session": {}, "turns": [turn], "at_once": 2}
    try:
        await started.loading
        with pytest.raises(HostLostError, match=r"no response within 0\.1 s"):
            await started.host.request(request, 0.1, lambda event: None)
    finally:
        await started.end()


async def test_the_next_run_sees_a_save_of_the_same_size_within_the_same_second(write_agent):
    for answer in ("aaa", "bbb", "ccc"):
        agent = write_agent(
            "from my_agent.prompts import ANSWER\n\ndef root_agent(m, s):\n    return ANSWER\n",
            prompts=f"ANSWER = '{answer}'\n",
        )
        sets = EvalSet(eval_set_id="s", eval_cases=[case("one", turn("hi", answer))])
        result = await evaluate(agent, sets, TEXT_ONLY)
        assert result.status is Status.PASSED, answer


async def test_session_input_is_honoured_and_nothing_leaks_between_cases(write_agent):
    agent = write_agent("""
        def root_agent(message, session):
            session.state["count"] = session.state.get("count", 0) + 1
            session.state["user:seen"] = True
            return f"{session.app_name} {session.user_id} {session.state['count']}"
    """)
    given = {"app_name": "shop", "user_id": "ann", "state": {"count": 5}}
    sets = EvalSet(
        eval_set_id="state",
        eval_cases=[
            case("given", turn("a", "shop ann 6"), turn("b", "shop ann 7"), session_input=given),
            case("again", turn("a", "shop ann 6"), session_input=given),
            case("end", turn("a", "evaltui test_user_id 1"), final_session_state={"count": 1}),
            case("wrong end", turn("a", "evaltui test_user_id 1"), final_session_state={"count": 2}),
        ],
    )
    result = await evaluate(agent, sets, TEXT_ONLY, workers=1)
    assert statuses(result) == [Status.PASSED] * 3 + [Status.FAILED]
    assert [(d.path, d.expected, d.actual) for d in result.cases[3].state] == [("count", 2, 1)]


async def test_repeats_that_differ_are_flaky(write_agent, tmp_path):
    agent = write_agent(f"""
        from pathlib import Path
        marks = Path({str(tmp_path)!r}) / "marks"

        def root_agent(message, session):
            with marks.open("a") as file:
                file.write("x")
            return message if len(marks.read_text()) <= 3 else "something else"
    """)
    result = await evaluate(agent, cases_saying("hello"), TEXT_ONLY, runs=5, parallel=1, pass_if=0.6)
    assert result.cases[0].status is Status.FLAKY
    assert result.cases[0].passed_repeats == 3
    assert result.cases[0].policy_met


async def test_hosts_end_when_their_parent_is_killed(write_agent, tmp_path):
    pid_file = tmp_path / "pid"
    agent = write_agent(f"""
        import itertools, os
        from pathlib import Path

        def root_agent(message, session):
            Path({str(pid_file)!r}).write_text(str(os.getpid()))
            sum(itertools.repeat(1))
    """)
    script = textwrap.dedent(f"""
        import asyncio
        from evaltui import EvalSet, evaluate
        sets = EvalSet.model_validate({cases_saying("x").model_dump(mode="json", exclude_none=True)!r})
        asyncio.run(evaluate({str(agent)!r}, sets))
    """)
    parent = subprocess.Popen([sys.executable, "-c", script])
    await until(lambda: parent.poll() is not None or (pid_file.exists() and pid_file.read_text()))
    assert parent.poll() is None
    host = psutil.Process(int(pid_file.read_text()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    gone, alive = psutil.wait_procs([host], timeout=10)
    assert gone
    assert not alive


async def test_what_happened_is_read_once(write_agent, monkeypatch):
    read: list[str] = []
    decoded = execution.decode_event
    monkeypatch.setattr(execution, "decode_event", lambda text: read.append(text) or decoded(text))
    agent = write_agent("def root_agent(message, session):\n    return message\n")
    updates: list[Update] = []
    result = await evaluate(agent, cases_saying("one", "two"), on_update=updates.append)
    assert [one.repeats[0].actual[0].final_response.parts[0].text for one in result.cases] == ["one", "two"]
    happened = [one for one in updates if isinstance(one, Happened)]
    assert len(read) == len(set(read)) == len(happened) == 4
