"""`evaltui run --estimate`: what a run would take; no agent is imported and no model asked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from evaltui.commands.job import meant_by
from evaltui.commands.output import (
    ReportTarget,
    UsageError,
    agent_of,
    colored,
    parse_targets,
    report_width,
    settings_of,
    write_text,
)
from evaltui.commands.variants import asked_variants, with_variant
from evaltui.runs.estimating import Estimate, estimate
from evaltui.runs.selection import RunRequest, select
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_money, show_number
from evaltui.text.lines import Line, draw, wrap


def write_estimate(options: argparse.Namespace) -> int:
    """Raises UsageError, SelectionError, EvalSetError for what cannot be run."""
    targets = parse_targets(options.report, ("console", "json"))
    agent, settings = agent_of(options), settings_of(options)
    variants = asked_variants(options, settings)
    if len(variants) > 1:
        raise UsageError("--estimate takes one --variant at a time")
    with with_variant(options, agent, variants[0] if variants else None) as address:
        request, sets = meant_by(options, RunRequest(address, settings=settings))
        selected = select(request, sets)
        try:
            found = estimate(selected.plan, request.store, options.machines or 1)
            for target in targets:
                write_text(_text(found, target, selected.request.settings.record), target)
        except OSError as error:
            raise UsageError(f"--estimate: {error}") from error
    return 0


def _text(found: Estimate, target: ReportTarget, record: str) -> str:
    if target.format == "json":
        return json.dumps({"version": 1, "estimate": asdict(found)}, indent=2) + "\n"
    lines = (row for line in _lines(found, record) for row in wrap(line, report_width(target)))
    return "".join(f"{draw(line, color=colored() and target.path is None)}\n" for line in lines)


def _lines(found: Estimate, record: str) -> Iterator[Line]:
    others = ": the median of the others" if found.unknown_cases < found.cases else ""
    never = f", {found.unknown_cases} never run{others}" if found.unknown_cases else ""
    calls = UNKNOWN if found.calls is None else counted(round(found.calls), "model call")
    replayed = "" if record == "off" else f"  recordings {record}: replayed calls cost nothing"
    tokens = None if found.tokens is None else round(found.tokens)
    most = "at most " if found.at_most else ""
    at_once = f"{show_number(found.parallel)} at once"
    where = f" on {counted(found.machines, 'machine')}" if found.machines > 1 else ""
    limited = ""
    if found.at_limit is not None:
        limited = f", at least {show_duration(found.at_limit.seconds)} by --limit {found.at_limit.limit}"
    rows = (
        ("cases", f"{found.cases}, {most}{counted(found.runs, 'run')}{never}"),
        ("calls", f"{most}{calls}{replayed}"),
        ("tokens", f"{most}{show_number(tokens)}"),
        ("cost", f"{most}{show_money(found.usd)}"),
        (
            "time",
            f"{most}{show_duration(found.seconds)}, {at_once}{where}{limited}",
        ),
    )
    yield from ([(f"{label:8}", "muted"), (text, "")] for label, text in rows)
