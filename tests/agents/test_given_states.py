"""A recorded case starts with the state that was given, never with defaults of the agent's class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents_with_defaults import SOURCES
from framework_loops import Loop


@pytest.mark.usefixtures("fresh_hosts")
@pytest.mark.parametrize("given", [{}, {"tier": "gold", "key": "wk-test"}])
@pytest.mark.parametrize("framework", SOURCES)
def test_a_recorded_case_starts_as_given_and_notices_another_default(
    framework: str, given: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = Loop(tmp_path, SOURCES[framework], capsys)
    start = tmp_path / "start.json"
    start.write_text(json.dumps({"state": given}))
    loop.record("hi", "more", options=["--initial-session", start] if given else [])
    (case,) = json.loads((loop.agent / "a.evalset.json").read_text())["eval_cases"]
    assert case.get("session_input", {}).get("state", {}) == given
    assert loop.run()[0] == 0
    loop.edit('"EUR"', '"USD"')
    code, printed = loop.run()
    assert (code, "USD" in printed) == (1, True), printed
