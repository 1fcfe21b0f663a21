"""Seconds until the verdict on one case in a workbench without a screen, the median of several:
`warm.py save AGENT_DIR` from a save of the agent's code, watched; `warm.py again AGENT_DIR` from `r`."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.workbench import Workbench

TIMES = 9


class Stopwatch:
    """Sees when a workbench has the verdict of another run."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._last: object = None
        self._seen = asyncio.Event()
        self._at = 0.0
        workbench.messages.subscribe(self._look, WorkbenchMessage)

    def _look(self, _: WorkbenchMessage) -> None:
        run = self._workbench.runs.current
        if run is not None and run is not self._last and run.done:
            self._last, self._at = run, time.perf_counter()
            self._seen.set()

    async def since(self, began: float) -> float:
        await self._seen.wait()
        self._seen.clear()
        return self._at - began


async def main(what: str, agent: Path) -> float:
    workbench = Workbench(agent)
    await workbench.open()
    await workbench.runs.warm_up()
    if what == "save":
        workbench.watch.start()
        await workbench.watch.ready()
    stopwatch = Stopwatch(workbench)
    source = agent / "agent.py"
    spent = []
    try:
        for number in range(TIMES + 2):
            # The first two find nothing prepared, or not by a run.
            began = time.perf_counter()
            if what == "save" and number > 0:
                source.write_text(source.read_text("utf-8") + f"# {number}\n", "utf-8")
            else:
                workbench.runs.run_case()
            spent.append(await stopwatch.since(began))
            await workbench.runs.finished()
            await workbench.agent.warm_hosts.ready()
    finally:
        await workbench.close()
    return statistics.median(spent[2:])


print(asyncio.run(main(sys.argv[1], Path(sys.argv[2]))))
