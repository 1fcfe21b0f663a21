"""`evaltui run --estimate`: the expected cost and duration of a run, without agent and model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from evaltui.commands.job import completed_request
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
from evaltui.commands.variants import variants_of_options, with_variant
from evaltui.runs.estimating import Estimate, estimate
from evaltui.runs.selection import RunRequest, select
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_money, show_number
from evaltui.text.lines import Line, draw, wrap


def write_estimate(options: argparse.Namespace) -> int:
    """Raises UsageError, SelectionError, EvalSetError for what cannot be run."""
    targets = parse_targets(options.report, ("console", "json"))
    agent, settings = agent_of(options), settings_of(options)
    variants = variants_of_options(options, settings)
    if len(variants) > 1:
        raise UsageError("--estimate takes one --variant at a time")
    with with_variant(options, agent, variants[0] if variants else None) as address:
        request, sets = completed_request(options, RunRequest(address, settings=settings))
        selected = select(request, sets)
        try:
            estimated = estimate(selected.plan, request.store, options.machines or 1)
            for target in targets:
                write_text(_text(estimated, target, selected.request.settings.record), target)
        except OSError as error:
            raise UsageError(f"--estimate: {error}") from error
    return 0


def _text(estimated: Estimate, target: ReportTarget, record: str) -> str:
    if target.format == "json":
        return json.dumps({"version": 1, "estimate": asdict(estimated)}, indent=2) + "\n"
    lines = (row for line in _lines(estimated, record) for row in wrap(line, report_width(target)))
    return "".join(f"{draw(line, color=colored() and target.path is None)}\n" for line in lines)


def _lines(estimated: Estimate, record: str) -> Iterator[Line]:
    others = ": the median of the others" if estimated.unknown_cases < estimated.cases else ""
    never = f", {estimated.unknown_cases} never run{others}" if estimated.unknown_cases else ""
    calls = UNKNOWN if estimated.calls is None else counted(round(estimated.calls), "model call")
    replayed = "" if record == "off" else f"  recordings {record}: replayed calls cost nothing"
    tokens = None if estimated.tokens is None else round(estimated.tokens)
    most = "at most " if estimated.at_most else ""
    at_once = f"{show_number(estimated.parallel)} at once"
    where = f" on {counted(estimated.machines, 'machine')}" if estimated.machines > 1 else ""
    limited = ""
    if estimated.at_limit is not None:
        limited = (
            f", at least {show_duration(estimated.at_limit.seconds)} by --limit {estimated.at_limit.limit}"
        )
    rows = (
        ("cases", f"{estimated.cases}, {most}{counted(estimated.runs, 'run')}{never}"),
        ("calls", f"{most}{calls}{replayed}"),
        ("tokens", f"{most}{show_number(tokens)}"),
        ("cost", f"{most}{show_money(estimated.usd)}"),
        (
            "time",
            f"{most}{show_duration(estimated.seconds)}, {at_once}{where}{limited}",
        ),
    )
    yield from ([(f"{label:8}", "muted"), (text, "")] for label, text in rows)
