"""Recorded conversations beside the cases that they pass, and what of their changes is noticed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from eval_data import make_case

from evaltui.core.gaps.gaps import Coverage, GapSearch, RecordedCase
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.scoring import Expected


def recorded(expected, actual, criteria, evaltui=None, *, final_state=None, tools=(), **case):
    """The case `c` of the set `s` with a conversation; `final_state` is by default the expected one."""
    config = EvalConfig.model_validate({"criteria": criteria, "evaltui": evaltui or {}})
    models = [EvalCase.model_validate(make_case("c", *turns, **case)) for turns in (expected, actual)]
    state = case.get("final_session_state") if final_state is None else final_state
    made = RecordedCase(Expected("s", models[0], config), models[1].conversation, state)
    return replace(made, tools={tool.name: tool for tool in tools})


def report_of(case, most=1000):
    search = GapSearch(Coverage({}))
    asyncio.run(search.add(CaseId("s.evalset.json", "c"), case, most))
    return search.report()
