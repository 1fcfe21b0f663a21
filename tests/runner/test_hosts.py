"""Agents that behave badly, in real child processes: the guilty case alone is an ERROR."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec
from typing import NamedTuple

import psutil
import pytest
from eval_data import make_answers, make_case, make_set, make_turn
from host_processes import descendants, is_running
from waiting import until

from evaltui import EvalConfig, EvalSet, RunResult, Status, evaluate
from evaltui.agents.errors import HostLostError
from evaltui.agents.protocol import DisturbedChannelError, SealedLines, encode
from evaltui.project.agent_address import AgentAddress
from evaltui.project.configs import ConfigInUse
from evaltui.runner import execution
from evaltui.runner.execution import run_plan
from evaltui.runner.host import import_limit
from evaltui.runner.plan import AgentBroken, CaseStarted, Happened, Noted, RunPlan, SetPlan, Update
from evaltui.runner.starting import HostSettings, start_host

pytestmark = pytest.mark.usefixtures("fresh_hosts")

TEXT_ONLY = EvalConfig(criteria={"response_match_score": 0.9})
ECHO = "def root_agent(message, session):\n    return message\n"


def statuses(result: RunResult) -> list[Status]:
    return [case.status for case in result.cases]


class Printed(list[str]):
    """The lines that an agent prints."""

    def __call__(self, update: Update) -> None:
        if isinstance(update, Happened) and update.event.kind == "console":
            self.append(update.event.data["text"])


class Bad(NamedTuple):
    """Code of an agent that ends or holds up its process, and what the error says."""

    code: str
    message: str = ""
    type: str = ""
    kind: str = "async def"
    has_place: bool = True


def hangs(code: str, **fields: object) -> Bad:
    return Bad(code, "no response within 1 s", "TimeoutError", **fields)


def ends(code: str, message: str = "") -> Bad:
    return Bad(code, message, has_place=False)


BAD = {
    "os._exit": ends("os._exit(7)", "exit code 7"),
    "os._exit(0)": ends("os._exit(0)", "exit code 0"),
    "segfault": ends("ctypes.string_at(0)", "SIGSEGV"),
    "sys.exit": ends("sys.exit('bye')"),
    "sys.exit in a task": ends("await asyncio.create_task(leave())"),
    "exception": Bad("raise RuntimeError('Reauthentication is needed')", "Reauthentication", "RuntimeError"),
    "unserialisable state": ends("session.state['lock'] = threading.Lock()", "state.lock is a lock"),
    "unserialisable result": ends("return object()"),
    "closed channel": ends("os.closerange(3, 4096)"),
    "await": hangs("await asyncio.sleep(1000)"),
    "await in a task": hangs("await asyncio.gather(asyncio.sleep(1000))"),
    "python loop": hangs("while True: pass"),
    "blocking call": hangs("time.sleep(1000)"),
    "loop in C": hangs("sum(itertools.repeat(1))"),
    "swallowed cancel": hangs("await stubborn()", has_place=False),
    "loop in a thread": hangs("while True: pass", kind="def"),
    "blocking call in a thread": hangs("time.sleep(1000)", kind="def"),
}
if sys.platform == "linux":
    # Only Linux has real-time signals and subreapers.
    BAD |= {
        "its group ended": ends("os.killpg(0, signal.SIGTERM)", "was ended by SIGTERM"),
        "its guard ended": ends(
            "os.kill(os.getppid(), signal.SIGTERM); time.sleep(1000)", "was ended by SIGTERM"
        ),
        "its guard killed": ends(
            "os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)", "was ended by SIGKILL"
        ),
        "a real-time signal": ends(
            "os.kill(os.getpid(), signal.SIGRTMIN + 5)", f"was ended by signal {signal.SIGRTMIN + 5}"
        ),
    }
THOROUGH = {"its group ended", "its guard ended"}
AGENT = """
    import asyncio, ctypes, itertools, os, signal, sys, threading, time

    async def leave():
        sys.exit("bye")

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass

    {kind} root_agent(message, session):
        if message == "bad":
            {code}
        {sleep}(0.05)
        return message
"""


def agent_of(bad: Bad) -> str:
    sleep = "await asyncio.sleep" if bad.kind == "async def" else "time.sleep"
    return AGENT.format(kind=bad.kind, code=bad.code, sleep=sleep)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(bad, id=name, marks=[pytest.mark.thorough] * (name in THOROUGH))
        for name, bad in BAD.items()
    ],
)
async def test_what_ends_or_holds_up_a_process_is_an_error_of_the_guilty_case_alone(write_agent, bad):
    sets = make_answers("one", "bad", "two", "three")
    is_late = bad.type == "TimeoutError"
    result = await evaluate(
        write_agent(agent_of(bad)),
        sets,
        TEXT_ONLY,
        parallel=1 if is_late else 3,
        timeout=1 if is_late else 60,
    )
    assert statuses(result) == [Status.PASSED, Status.ERROR, Status.PASSED, Status.PASSED]
    error = result.cases[1].error
    assert error.message
    assert bad.message in error.message
    assert bad.type in ("", error.type)
    if bad.has_place:
        assert error.where.startswith("agent.py:")
    if bad.type == "RuntimeError":
        assert "agent.py" in error.traceback
        assert "evaltui/" not in error.traceback
    assert descendants() == []


@pytest.mark.parametrize("parallel", [1, 3])
async def test_a_crash_that_does_not_come_again_is_noted(write_agent, parallel):
    agent = write_agent("""
        import asyncio, os
        from pathlib import Path

        async def root_agent(message, session):
            crashed = Path(__file__).with_name("crashed.log")
            if message == "bad" and not crashed.exists():
                await asyncio.sleep(0.2)
                crashed.touch()
                os._exit(7)
            return message
    """)
    notes: list[str] = []

    def update(update: Update) -> None:
        if isinstance(update, Noted):
            notes.append(update.text)

    sets = make_answers("one", "bad", "two")
    result = await evaluate(agent, sets, TEXT_ONLY, parallel=parallel, workers=1, on_update=update)

    assert statuses(result) == [Status.PASSED] * 3
    (note,) = notes
    assert "ended itself with exit code 7 (os._exit), but not when run again alone" in note

    # Nothing but a repeat of the case can have ended it, although the next one passes.
    (agent / "crashed.log").unlink()
    notes.clear()
    result = await evaluate(
        agent, make_answers("bad"), TEXT_ONLY, runs=4, parallel=parallel, workers=1, on_update=update
    )
    (case,) = result.cases
    assert sorted(repeat.status for repeat in case.repeats) == [Status.ERROR, *[Status.PASSED] * 3]
    assert notes == []


@pytest.mark.parametrize("what", ["'again'", "'again' * 500_000"], ids=["many", "big"])
async def test_an_agent_that_never_stops_talking_is_stopped(write_agent, what):
    agent = write_agent(f"""
        async def root_agent(message, session):
            while message == "endless":
                yield {what}
            yield message
    """)
    turns: list[float] = []
    running = asyncio.create_task(evaluate(agent, make_answers("one", "endless"), TEXT_ONLY, parallel=1))
    while not running.done():
        turns.append(time.monotonic())
        await asyncio.sleep(0.01)
    result = await running
    assert statuses(result) == [Status.PASSED, Status.ERROR]
    assert result.cases[1].error.type == "TooManyEventsError"
    assert "endless loop" in result.cases[1].error.message
    assert len(turns) > 10, "nothing else had its turn meanwhile"


@pytest.mark.skipif(find_spec("google.adk") is not None, reason="google-adk is installed")
async def test_an_adk_agent_without_google_adk_says_what_to_install(write_agent):
    agent = write_agent("from google.adk.agents import LlmAgent\n\nroot_agent = LlmAgent(name='x')\n")
    error = (await evaluate(agent, make_answers("one"), TEXT_ONLY)).cases[0].error
    assert "-m pip install google-adk" in error.message
    assert error.traceback == ""


@pytest.mark.parametrize("bad", ["await", "loop in C"])
async def test_cancelling_ends_every_process(write_agent, bad):
    running = asyncio.Event()

    def watch(update: Update) -> None:
        if isinstance(update, CaseStarted):
            running.set()

    cases = tuple(EvalSet.model_validate(make_answers("bad", "bad")).eval_cases)
    eval_set = SetPlan("basics", "basics", cases, ConfigInUse(None, TEXT_ONLY))
    plan = RunPlan(AgentAddress(write_agent(agent_of(BAD[bad]))), (eval_set,))
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
    result = await evaluate(write_agent(LEAVING_BEHIND), make_answers(str(tmp_path / "note")), TEXT_ONLY)
    left = [int(pid) for pid in result.cases[0].repeats[0].actual[0].final_response.parts[0].text.split()]
    assert len(left) == 3
    assert not any(map(is_running, left))


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
    printed = Printed()
    assert (await evaluate(agent, make_answers("one"), TEXT_ONLY, on_update=printed)).passed
    out = {"while importing", "from print", "raw \\xff bytes", "from C", "from a child", "no input"}
    assert {*printed} >= out | {"to stderr"}


async def test_messages_of_any_size_and_numbers_that_json_lacks(write_agent):
    agent = write_agent("""
        def root_agent(message, session):
            session.state["nan"] = float("nan")
            return message * 500_000
    """)
    case = make_case("one", make_turn("0123456789", "x"), final_session_state={"nan": "NaN"})
    result = await evaluate(agent, make_set("big", case), EvalConfig())
    assert result.status is Status.PASSED
    assert len(result.cases[0].repeats[0].actual[0].final_response.parts[0].text) == 5_000_000


@pytest.mark.parametrize(
    ("kind", "source", "where"),
    [
        ("NameError", "import os\n\nroot_agent = tols\n", "agent.py:3"),
        ("SyntaxError", "def f(:\n", "agent.py:1"),
        ("ModuleNotFoundError", "import no_such_module_here\n", "agent.py:1"),
        ("SystemExit", "import sys\nsys.exit(3)\n", "agent.py:2"),
        ("AgentLoadError", "x = 1\n", ""),
        ("TimeoutError", "import time\ntime.sleep(1000)\n", "agent.py:2 in <module>"),
    ],
)
async def test_broken_agent_code_shows_the_users_own_frame(write_agent, monkeypatch, kind, source, where):
    monkeypatch.setattr("evaltui.runner.host.SHORTEST_IMPORT", 0.0)
    updates: list[Update] = []
    timeout = 1 if kind == "TimeoutError" else 60
    result = await evaluate(
        write_agent(source), make_answers("one", "two"), TEXT_ONLY, on_update=updates.append, timeout=timeout
    )
    assert statuses(result) == [Status.ERROR, Status.ERROR]
    error = result.cases[0].error
    assert (error.type, error.where) == (kind, where)
    assert timeout == 60 or "not imported within 1 s" in error.message
    assert sum(isinstance(update, AgentBroken) for update in updates) == 1


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


def test_an_import_has_the_time_of_a_case_within_limits():
    assert [import_limit(timeout) for timeout in (1, 50, 300)] == [30, 50, 120]


async def test_an_agent_that_replaces_functions_of_the_library_is_heard(write_agent):
    replaced = "json.loads = json.dumps = os.read = os.write = os._exit = lambda *args, **kwargs: None"
    agent = write_agent(f"import json, os\n{replaced}\n\n{ECHO}")
    result = await evaluate(agent, make_answers("one", "two"), TEXT_ONLY, timeout=5)
    assert statuses(result) == [Status.PASSED, Status.PASSED]


async def test_a_host_that_never_answers_ends_by_the_time_out(write_agent, monkeypatch):
    monkeypatch.setattr("evaltui.runner.host._GRACE", 0.01)
    deaf = "asyncio.BaseEventLoop.call_soon_threadsafe = lambda *args, **kwargs: None"
    agent = AgentAddress(write_agent(f"import asyncio\n{deaf}\n\n{ECHO}"))
    started = start_host(HostSettings(agent, 20.0))
    turn = {"role": "user", "parts": [{"text": "one"}]}
    try:
        await started.loading
        with pytest.raises(HostLostError, match=r"no response within 0\.1 s"):
            await started.host.request({"op": "run", "session": {}, "turns": [turn], "at_once": 2}, 0.1)
    finally:
        await started.end()


async def test_the_next_run_sees_a_save_of_the_same_size_within_the_same_second(write_agent):
    for answer in ("aaa", "bbb", "ccc"):
        agent = write_agent(
            "from my_agent.prompts import ANSWER\n\ndef root_agent(m, s):\n    return ANSWER\n",
            prompts=f"ANSWER = '{answer}'\n",
        )
        assert (await evaluate(agent, make_answers("hi", answer=answer), TEXT_ONLY)).passed, answer


async def test_session_input_is_honoured_and_nothing_leaks_between_cases(write_agent):
    agent = write_agent("""
        def root_agent(message, session):
            session.state["count"] = session.state.get("count", 0) + 1
            session.state["user:seen"] = True
            return f"{session.app_name} {session.user_id} {session.state['count']}"
    """)
    start = {"session_input": {"app_name": "shop", "user_id": "ann", "state": {"count": 5}}}
    alone = make_turn("a", "evaltui test_user_id 1")
    sets = make_set(
        "state",
        make_case("given", make_turn("a", "shop ann 6"), make_turn("b", "shop ann 7"), **start),
        make_case("again", make_turn("a", "shop ann 6"), **start),
        make_case("end", alone, final_session_state={"count": 1}),
        make_case("wrong end", alone, final_session_state={"count": 2}),
    )
    result = await evaluate(agent, sets, TEXT_ONLY, workers=1)
    assert statuses(result) == [Status.PASSED] * 3 + [Status.FAILED]
    assert [(d.path, d.expected, d.actual) for d in result.cases[3].state] == [("count", 2, 1)]


async def test_repeats_that_differ_are_flaky():
    runs: list[str] = []

    def agent(message, session):
        runs.append(message)
        return message if len(runs) <= 3 else "something else"

    result = await evaluate(agent, make_answers("hello"), TEXT_ONLY, runs=5, parallel=1, pass_if=0.6)
    case = result.cases[0]
    assert (case.status, case.passed_repeats, case.policy_met) == (Status.FLAKY, 3, True)


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
        from evaltui import evaluate
        asyncio.run(evaluate({str(agent)!r}, {make_answers("x")!r}))
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
    updates: list[Update] = []
    await evaluate(write_agent(ECHO), make_answers("one", "two"), on_update=updates.append)
    happened = [update for update in updates if isinstance(update, Happened)]
    assert len(read) == len(set(read)) == len(happened) == 4


# Cases side by side

SIDE_BY_SIDE = """
import asyncio

under_way = 0

async def root_agent(message, session):
    global under_way
    under_way += 1
    try:
        if message.startswith("late"):
            await asyncio.sleep(60)
        if message in ("slow", "stubborn"):
            try:
                await asyncio.sleep(0.6)
            except asyncio.CancelledError:
                if message == "slow":
                    raise
        if message == "cancels":
            await asyncio.sleep(0.05)
            for task in asyncio.all_tasks():
                {condition}task.cancel()
            await asyncio.sleep(0)
        if message == "cancels itself":
            raise asyncio.CancelledError
        return "ok" if under_way <= {parallel} else f"{{under_way}} at once"
    finally:
        under_way -= 1
"""


async def test_no_more_cases_run_at_once_than_parallel_says_and_only_late_ones_time_out(write_agent):
    messages = [*["hi"] * 20, "late1", "late2", "slow", *["hi"] * 20]
    agent = write_agent(SIDE_BY_SIDE.format(condition="", parallel=2))
    sets = make_answers(*messages, answer="ok")
    result = await evaluate(agent, sets, TEXT_ONLY, parallel=2, workers=1, timeout=1.0)
    errors = {
        message: case.error and case.error.message
        for message, case in zip(messages, result.cases, strict=True)
        if case.status is not Status.PASSED
    }
    assert errors.keys() == {"late1", "late2"}
    assert all("no response within 1 s" in message for message in errors.values())


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("", id="all"),
        pytest.param("if task is not asyncio.current_task(): ", id="others", marks=pytest.mark.thorough),
    ],
)
async def test_a_case_that_cancels_every_task_is_the_only_error(write_agent, condition):
    agent = write_agent(SIDE_BY_SIDE.format(condition=condition, parallel=9))
    messages = ["slow", "cancels", "stubborn", "cancels itself", *["hi"] * 20]
    result = await evaluate(agent, make_answers(*messages, answer="ok"), TEXT_ONLY, parallel=4, workers=1)
    assert statuses(result) == [
        Status.PASSED,
        Status.ERROR,
        Status.PASSED,
        Status.ERROR,
        *[Status.PASSED] * 20,
    ]
    assert "all_tasks" in result.cases[1].error.message
    assert result.cases[3].error.type == "CancelledError"


# Code of the user's that writes where evaltui's messages are

# What user code can find: every socket among its descriptors.
FORGE = """
import json, os, socket, stat, sys

def forge(text):
    for name in os.listdir("/proc/self/fd") if sys.platform == "linux" else range(3, 1024):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                os.write(int(name), text.encode())
        except OSError:
            pass
"""
LIES = {
    "done": json.dumps({"op": "done", "id": 1, "state": {}}) + "\n",
    "failed": json.dumps({"op": "failed", "id": 1}) + "\n",
    "event": json.dumps({"op": "event", "id": 1, "event": {"kind": 7}}) + "\n",
    "fatal": json.dumps({"op": "fatal", "error": 7}) + "\n",
    "no object": "[1, 2]\n",
    "no JSON": "not JSON\n",
    "no end of a line": "and then",
    "bytes": "\x00\xff\n\n\n",
}


async def test_an_agent_that_writes_lines_of_the_protocol_prints_them(write_agent):
    agent = write_agent(
        f"{FORGE}\nLIES = {LIES!r}\n\ndef root_agent(message, session):\n"
        "    forge(LIES.get(message, ''))\n    return message\n"
    )
    printed = Printed()
    result = await evaluate(agent, make_answers(*LIES), TEXT_ONLY, parallel=1, on_update=printed)
    assert statuses(result) == [Status.PASSED] * len(LIES)
    assert LIES["done"].strip() in printed
    assert "and then" in printed


async def test_a_metric_that_writes_lines_of_the_protocol_is_scored_by_what_it_returns(write_agent):
    answer = json.dumps({"op": "done", "id": 2, "turns": [{"score": 1.0}]}) + "\n"
    metrics = f"{FORGE}\ndef honest(actual, expected, criterion):\n    forge({answer!r})\n    return 0.0\n"
    criterion = {"threshold": 0.5, "function": "my_agent.metrics.honest"}
    config = {"criteria": {}, "evaltui": {"criteria": {"honest": criterion}}}
    result = await evaluate(write_agent(ECHO, metrics=metrics), make_answers("one", "two"), config)
    assert statuses(result) == [Status.FAILED] * 2, result.cases[0].repeats[0].metrics


def test_what_is_without_the_seal_is_no_message():
    stray: list[bytes] = []
    lines = SealedLines("seal", stray.append)
    sent = b"seal" + encode({"op": "done"})
    assert list(lines.feed(b'{"op": "done"}\nhalf a line ' + sent[:7])) == []
    assert list(lines.feed(sent[7:] + sent)) == [{"op": "done"}] * 2
    assert stray == [b'{"op": "done"}', b"half a line "]
    with pytest.raises(DisturbedChannelError):
        list(lines.feed(b'seal{"op": "do stray ne"}}\n'))
