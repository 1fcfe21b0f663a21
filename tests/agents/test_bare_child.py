"""The child process of a function agent stands on the standard library and on evaltui's own few modules."""

from __future__ import annotations

import sys
import textwrap
import venv
from pathlib import Path
from typing import Any

import pytest

from evaltui.agents.errors import AgentBrokenError, RequestFailedError
from evaltui.agents.protocol import decode_event
from evaltui.core.model.events import Event, Json
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.starting import HostSettings, start_host

pytestmark = pytest.mark.usefixtures("fresh_hosts")

# The first thing that the interpreter of the agent does: refuse whatever is not its own or evaltui's.
REFUSAL = """
    import sys

    MODULES_OF_THE_PROJECT = ("agents", "core", "events", "project", "runner", "textual")

    class Refusal:
        def find_spec(self, name, path=None, target=None):
            top = name.partition(".")[0]
            own = top in sys.stdlib_module_names or top.startswith(("_sysconfigdata", "my_agent", "agent"))
            evaltui = top in ("evaltui", "_evaltui", "sitecustomize", "usercustomize")
            if not own and not evaltui and top not in MODULES_OF_THE_PROJECT:
                raise ModuleNotFoundError(f"refused: {name}", name=name)

    sys.meta_path.insert(0, Refusal())
"""
AGENT = """
    import sys
    from evaltui.events import text, tool_call, tool_result

    async def root_agent(message, session):
        session.state["turns"] = session.state.get("turns", 0) + 1
        if message == "modules":
            session.state["modules"] = sorted(sys.modules)
        yield tool_call("look_up", {"order": 7}, id="one")
        yield tool_result("look_up", {"price": 12.5}, id="one")
        yield "it "
        yield "costs 12.5"
"""
ALLOWED = {
    "evaltui": {"events"},
    "evaltui.core": {"compare", "model", "conversation", "recordings", "secret_spellings", "secrets"},
    "evaltui.documents": {"own_folder"},
    "evaltui.project": {"folders", "import_names", "packages"},
    "evaltui.text": {"figures", "values"},
}


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts run in an interpreter that has nothing installed."""
    folder = tmp_path / "bare"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text(textwrap.dedent(REFUSAL))
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    monkeypatch.delenv("PYTHONPATH", raising=False)


def write(folder: Path, source: str) -> Path:
    agent = folder / "my_agent"
    agent.mkdir()
    (agent / "agent.py").write_text(textwrap.dedent(source))
    return agent


async def run(agent: Path, *messages: str, **session: Any) -> tuple[list[Event], Json]:
    """What happens when these messages are sent, and the session state at the end."""
    happened: list[str] = []
    started = start_host(HostSettings(AgentAddress(agent), 20.0))
    try:
        await started.loading
        turns = [{"role": "user", "parts": [{"text": message}]} for message in messages]
        request = {"op": "run", "session": session, "turns": turns}
        answer = await started.host.request(request, 20.0, happened.append)
    finally:
        await started.end()
    return [Event.from_json(decode_event(one)) for one in happened], answer["state"]


@pytest.mark.usefixtures("bare_python")
async def test_a_function_agent_runs_with_the_standard_library_alone(tmp_path):
    happened, state = await run(write(tmp_path, AGENT), "one", "two", state={"turns": 5})
    assert state == {"turns": 7}
    told = [event for event in happened if event.turn == 1 and not event.data.get("partial")]
    assert [event.kind for event in told] == ["user", "tool_call", "state", "tool_result", "text"]
    call, result = (next(one for one in told if one.kind == kind) for kind in ("tool_call", "tool_result"))
    assert call.content == {
        "role": "model",
        "parts": [{"function_call": {"name": "look_up", "args": {"order": 7}, "id": "one"}}],
    }
    assert (call.id, result.parent) == ("one", "one")
    assert told[-1].content == {"role": "model", "parts": [{"text": "it costs 12.5"}]}


@pytest.mark.usefixtures("bare_python")
async def test_the_child_of_a_function_agent_imports_few_modules(tmp_path):
    _, state = await run(write(tmp_path, AGENT), "modules")
    # `evaltui` is another name of the same modules.
    assert {"_evaltui.agents.host", "_evaltui.events", "evaltui.events"} <= set(state["modules"])
    ours = {
        name.lstrip("_") for name in state["modules"] if name.partition(".")[0] in ("evaltui", "_evaltui")
    }
    # The room of the host itself may import all of its own.
    ours = {name for name in ours if name.split(".")[1:2] != ["agents"]}
    rooms = {".".join(name.split(".")[:2]): set[str]() for name in ours if name.count(".") >= 1}
    for name in ours:
        _, room, *inner = [*name.split("."), "", ""][:3]
        if inner[0]:
            rooms[f"evaltui.{room}"].add(inner[0])
    singles = {name.removeprefix("evaltui.") for name, inner in rooms.items() if name not in ALLOWED}
    assert singles <= ALLOWED["evaltui"]
    assert all(inner <= ALLOWED.get(name, set()) for name, inner in rooms.items()), rooms


@pytest.mark.usefixtures("bare_python")
async def test_what_needs_a_library_says_which(tmp_path):
    agent = write(tmp_path, "def root_agent(message, session):\n    return str(session.content)\n")
    with pytest.raises(RequestFailedError, match="pip install google-genai"):
        await run(agent, "one")
    (agent / ".env").write_text("NAME=value\n")
    with pytest.raises(AgentBrokenError, match="pip install python-dotenv"):
        await run(agent, "one")


@pytest.mark.usefixtures("bare_python")
@pytest.mark.parametrize("place", ["", "my_agent"])
@pytest.mark.parametrize("name", ["evaltui", "core", "project", "runner", "textual", "events"])
async def test_a_module_of_the_project_may_have_any_name(name, place, tmp_path):
    source = f"""
        import {name}

        def root_agent(message, session):
            return {name}.REPLY
    """
    agent = write(tmp_path, source)
    (tmp_path / place / name).mkdir()
    (tmp_path / place / name / "__init__.py").write_text("from .inner import REPLY")
    (tmp_path / place / name / "inner.py").write_text("REPLY = 'of the project'")
    happened, _ = await run(agent, "one")
    assert happened[-1].content == {"role": "model", "parts": [{"text": "of the project"}]}


@pytest.mark.usefixtures("bare_python")
async def test_what_evaltui_does_not_have_is_not_found_under_its_public_name(tmp_path):
    source = """
        from evaltui import events
        import evaltui.events as again

        assert events is again
        try:
            import evaltui.no_such_module
        except ModuleNotFoundError as error:
            message = str(error)

        def root_agent(prompt, session):
            return message
    """
    happened, _ = await run(write(tmp_path, source), "one")
    assert happened[-1].content == {
        "role": "model",
        "parts": [{"text": "No module named 'evaltui.no_such_module'"}],
    }
