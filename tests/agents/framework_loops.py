"""The whole loop on the example of a framework in the guide: record, run, replay, and what broke."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from environments import environment_python

import evaltui
from evaltui.cli import main

GUIDE = Path(evaltui.__file__).parent / "guide" / "agents.md"


def example(heading: str) -> str:
    """The code under a heading of the guide."""
    section = GUIDE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found, f"no example under {heading}"
    return found[1]


class Loop:
    """An agent in a folder of its own, and commands on it."""

    def __init__(self, folder: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.agent = folder / "bot"
        self.agent.mkdir()
        (self.agent / "agent.py").write_text(source)
        self._turns = folder / "turns.txt"
        self._python = environment_python("EVALTUI_FRAMEWORKS_PYTHON")
        self._capsys = capsys

    def edit(self, old: str, new: str) -> None:
        path = self.agent / "agent.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def record(self, *messages: str, options: Sequence[object] = ()) -> list[dict]:
        """Records a case; the turns of it."""
        self._turns.write_text("\n\n".join(messages))
        path = self.agent / "a.evalset.json"
        code, out = self._call("record", self.agent, path, "--case", "one", "--turns", self._turns, *options)
        assert code == 0, out
        return json.loads(path.read_text())["eval_cases"][0]["conversation"]

    def start_in(self, state: dict) -> None:
        """Gives the recorded case an initial state."""
        path = self.agent / "a.evalset.json"
        data = json.loads(path.read_text())
        data["eval_cases"][0]["session_input"] = {"app_name": "a", "user_id": "u", "state": state}
        path.write_text(json.dumps(data))

    def run(self, *options: str) -> tuple[int, str]:
        """The exit code and what is printed."""
        return self._call("run", self.agent, "--workers", "1", *options)

    def replays_without_model_and_tool(self) -> None:
        """The recorded case passes, and again in a replay while its tool is broken."""
        code, printed = self.run("--record", "auto")
        assert (code, "1 passed" in printed, "2 live model calls" in printed) == (0, True, True), printed
        self.edit('return {"price": 12.5}', 'raise ValueError("no till")')
        code, printed = self.run("--record", "replay")
        assert (code, "0 live model calls, 2 replayed, 1 tool call stubbed" in printed) == (0, True), printed
        self.edit('raise ValueError("no till")', 'return {"price": 12.5}')

    def _call(self, *words: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main([*map(str, words), "--python", self._python])
        captured = self._capsys.readouterr()
        sys.stderr.write(captured.err)
        return int(left.value.code or 0), captured.out + captured.err
