"""A host tells which of the user's files it has imported."""

from __future__ import annotations

import pytest

from evaltui.project.agent_address import AgentAddress
from evaltui.runner.starting import HostSettings, start_host

pytestmark = pytest.mark.usefixtures("fresh_hosts")


async def test_the_users_own_modules_are_told_wherever_they_are(write_agent, tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "words.py").write_text("GREETING = 'hi'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shared"), prepend=":")
    folder = write_agent(
        """
        import json
        import pydantic
        import words
        from . import tools

        def root_agent(message, session):
            return words.GREETING
        """,
        tools="",
    )
    started = start_host(HostSettings(AgentAddress(folder), 10.0))
    try:
        await started.loading
        files = {path.relative_to(tmp_path.resolve()).as_posix() for path in started.host.files}
    finally:
        await started.host.close()
    assert files == {"my_agent/__init__.py", "my_agent/agent.py", "my_agent/tools.py", "shared/words.py"}
