"""Seconds that edits of a set of 10,000 cases take in the workbench, without a screen, as JSON.

`python large_edits.py AGENT_DIR`. A merging save is one of a file that another program has changed;
`save_holds_up` is how long keys wait at most while it goes on. Peak is the resident memory, in megabytes,
that the process ever had.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from evaltui.documents.editing.set import SetEditor
from evaltui.workbench.workbench import Workbench

_MIDDLE = 5_000


def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


async def _longest_wait(done: asyncio.Future[bool]) -> float:
    """Seconds for which nothing else could be done, at most, until something is done."""
    longest = 0.0
    while not done.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - began)
    return longest


def _peak() -> float:
    """In megabytes."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    # The one above counts, on Linux, that of the process that has started this one, too.
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3


async def measure(agent: Path) -> dict[str, float]:
    workbench = Workbench(agent)
    await workbench.open()
    await workbench.runs.warm_up()
    path = workbench.sets.listed[0].path
    while workbench.sets.opened(path) is None:
        await asyncio.sleep(0.05)
    editing = workbench.editing

    def type_answer(text: str) -> None:
        def change(eval_set: SetEditor) -> object:
            return eval_set.case(_MIDDLE).turn(0).answer.set_text(text)

        assert editing.do("answer", path, change, extends=editing.last_step)
        editing.dirty_cases(path)

    took = {"first": _seconds(lambda: type_answer("a"))}
    took["typed"] = max(_seconds(lambda text=text: type_answer(text)) for text in ("ab", "abc", "abcd"))
    took["undo"] = _seconds(editing.undo)
    editing.redo()
    path.write_text(path.read_text().replace("please say 7 to me", "please SAY 7 to me"))
    began = time.perf_counter()
    took["save_holds_up"] = await _longest_wait(saving := editing.save(path))
    took["merging_save"] = time.perf_counter() - began
    assert saving.result()
    took["undo_after_merge"] = _seconds(editing.undo)
    took["peak"] = _peak()
    await workbench.close()
    return took


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1])))))
