"""Running offline, without keys, with metrics that cannot run: what is on the screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pilots import screen_lines, screen_text, turn, until, until_ran, workbench_on, write_cases

from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.workbench.state import Stage

CRITERIA = {
    "tool_trajectory_avg_score": 1.0,
    "response_match_score": 0.8,
    "safety_v1": 0.8,
    "final_response_match_v2": {"threshold": 0.5, "judge_model_options": {"judge_model": "azure/gpt-4o"}},
}
# It answers when it may.
AGENT = """
    import time
    from pathlib import Path

    def root_agent(message, session):
        while not (Path(__file__).parent / "go").exists():
            time.sleep(0.005)
        return message
"""
WHY = "safety_v1 and final_response_match_v2 cannot run  ! why"


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def agent(write_agent) -> Path:
    folder = write_agent(AGENT)
    write_cases(folder, "basics", {"one": [turn("all is well", "all is well")]})
    set_config(folder, CRITERIA)
    return folder


def set_config(folder: Path, criteria: object, **block: object) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": criteria, "evaltui": block}))


async def test_what_cannot_run_is_shown_before_the_agent_is_asked(agent):
    async with workbench_on(agent, (160, 45)) as (app, pilot):
        await until(pilot, lambda: app.workbench.agent.python_check is not None)
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen) and "google-adk" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, DetailsScreen))
        await pilot.press("r")
        await until(pilot, lambda: WHY in screen_lines(app)[-2])
        assert app.workbench.runs.current.done == set()
        (agent / "go").touch()
        await until_ran(pilot, lambda: app.workbench.runs.current.over)
        await until(pilot, lambda: "– NOT EVALUATED" in screen_text(app))
        assert WHY in screen_lines(app)[-2]


async def test_optional_metrics_let_the_case_pass(agent):
    (agent / "go").touch()
    set_config(agent, CRITERIA, optional=["safety_v1", "final_response_match_v2"])
    async with workbench_on(agent, (160, 45)) as (app, pilot):
        await pilot.press("r")
        await until_ran(
            pilot, lambda: app.workbench.runs.current is not None and app.workbench.runs.current.over
        )
        await until(pilot, lambda: "✓ PASSED   2/4 metrics" in screen_text(app))
        assert app.workbench.runs.current.stage is Stage.FINISHED
        lines = [" ".join(line.split()) for line in screen_lines(app)]
        assert any("– not scored safety_v1" in line for line in lines)
        assert any("GOOGLE_API_KEY is not set" in line for line in lines)
        assert "cannot run" not in screen_lines(app)[-2]


async def test_nothing_is_said_where_all_is_well(agent):
    (agent / "go").touch()
    set_config(agent, {"response_match_score": 0.8})
    async with workbench_on(agent, (160, 45)) as (app, pilot):
        await pilot.press("r")
        await until_ran(
            pilot, lambda: app.workbench.runs.current is not None and app.workbench.runs.current.over
        )
        await until(pilot, lambda: "Run 1 finished: 1 passed" in screen_lines(app)[-2])
        assert "cannot run" not in screen_text(app)
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: "✓ response_match_score  1 case" in screen_text(app))
