"""Seconds to score a case again, the median: `turns`, ten with two calls each and every answer different, or
`calls`, a thousand in one turn, every one different.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.scoring import score_case


def turn(answer: str, calls: list[dict]) -> dict:
    return {
        "user_content": {"role": "user", "parts": [{"text": "where is my order?"}]},
        "final_response": {"role": "model", "parts": [{"text": answer * 20}]},
        "intermediate_data": {"tool_uses": calls},
    }


def case(what: str, answer: str) -> EvalCase:
    if what == "turns":
        calls = [{"name": "find", "args": {"query": answer}}, {"name": "track", "args": {"id": 1}}]
        turns = [turn(answer, calls)] * 10
    else:
        finds = [{"name": "find", "args": {"query": answer, "page": n, "all": True}} for n in range(1000)]
        turns = [turn("it was sent on Monday ", finds)]
    return EvalCase.model_validate({"eval_id": "long", "conversation": turns})


async def main(what: str) -> float:
    expected, config = case(what, "it was sent on Monday "), EvalConfig.default()
    actual = case(what, "it will be sending on Tuesdays ").conversation or []
    spent = []
    for _ in range(31 if what == "turns" else 6):
        began = time.perf_counter()
        await score_case(expected, actual, config)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent[1:])


print(asyncio.run(main(sys.argv[1])))
