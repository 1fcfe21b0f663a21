"""Seconds to accept 5,000 cases at once, of which every call and every answer differs: what accepting changes
is shown, and done.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from evaltui.workbench.result.acceptable import choices_in_list
from evaltui.workbench.result.accepting import accept, propose
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

CASES = 5_000
AGENT = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        yield tool_call("find_order", {"query": message, "page": 2, "all": True})
        yield text(f"It was sent on Monday: {message}")
"""


def write_set(folder: Path) -> Path:
    call = {"name": "find_order", "args": {"query": "nothing", "page": 1}}
    turn = {
        "final_response": {"role": "model", "parts": [{"text": "no such order"}]},
        "intermediate_data": {"tool_uses": [call]},
    }
    cases = [
        {"eval_id": f"case_{number:05d}", "conversation": [{"user_content": _said(number), **turn}]}
        for number in range(CASES)
    ]
    path = folder / "orders.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "orders", "eval_cases": cases}, indent=2))
    return path


def _said(number: int) -> dict[str, object]:
    return {"role": "user", "parts": [{"text": f"where is order {number}?"}]}


async def main(folder: Path) -> float:
    path = write_set(folder)
    workbench = Workbench(folder)
    await workbench.open()
    workbench.navigation.select(Selection(path.name))
    workbench.runs.run_all()
    while not workbench.runs.current.over:
        await asyncio.sleep(0.05)
    (choice,) = choices_in_list(workbench.editing)
    began = time.perf_counter()
    proposal = await propose(workbench.editing, choice)
    assert [change.cases for change in proposal.changes] == [CASES], proposal.problem
    assert accept(workbench.editing, proposal)
    return time.perf_counter() - began


if __name__ == "__main__":
    from agents import write_agent

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        print(asyncio.run(main(write_agent(Path(root) / "orders", AGENT))))
    sys.stdout.flush()
