"""The palette's `Open agent…` lists the agents that were open before, and opens the chosen one."""

from pilots import screen_text, until, workbench_on

from evaltui.project.settings import remember_agent
from evaltui.tui.dialogs.palette import AgentScreen

IMPORTED = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


async def test_another_agent_is_opened_and_not_imported_before(write_agent):
    here, *others = (write_agent(IMPORTED * (name != "here"), name=name) for name in ("here", "one", "two"))
    for other in others:
        remember_agent(other)
    async with workbench_on(here, (80, 24)) as (app, pilot):
        await pilot.press("ctrl+p", *"open", "space", *"agent")
        await until(pilot, lambda: "Open another agent" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen) and len(app.screen.matches) == 2)
        await pilot.press(*"one")
        await until(pilot, lambda: app.screen.matches == [others[0]])
        await pilot.press("enter")
        await until(pilot, lambda: not app.is_running)
    assert app.next_agent == others[0]
    assert not (others[0] / "imported").exists()
