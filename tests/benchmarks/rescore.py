"""Seconds to score a case of ten turns again, two calls each and every answer different: the median."""

from __future__ import annotations

import asyncio
import statistics
import time

from evaltui.core.metrics.scoring import score_case
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase


def case(answer: str) -> EvalCase:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "where is my order?"}]},
        "final_response": {"role": "model", "parts": [{"text": answer * 20}]},
        "intermediate_data": {
            "tool_uses": [{"name": "find", "args": {"query": answer}}, {"name": "track", "args": {"id": 1}}]
        },
    }
    return EvalCase.model_validate({"eval_id": "long", "conversation": [turn] * 10})


async def main() -> float:
    expected, config = case("it was sent on Monday "), EvalConfig.default()
    actual = case("it will be sending on Tuesdays ").conversation or []
    spent = []
    for _ in range(31):
        began = time.perf_counter()
        await score_case(expected, actual, config)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent[1:])


print(asyncio.run(main()))
