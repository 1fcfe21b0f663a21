"""`evaltui metrics`, and warnings before a run for metrics that cannot run here."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from evaltui.commands.output import UsageError, complain, require_agent, width, write_lines
from evaltui.core.metrics.declaration import MetricInfo
from evaltui.core.metrics.preflight import MetricCheck, check_lines, check_metric
from evaltui.core.metrics.registry import METRICS
from evaltui.core.metrics.requirements import Facts, Readiness
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agents import is_agent
from evaltui.project.folders import agent_folder, is_json
from evaltui.project.interpreters import InterpreterError, find_interpreter
from evaltui.project.run_settings import SettingsError
from evaltui.project.workspace import open_workspace
from evaltui.reports.details import MAX_WIDTH
from evaltui.runner.metric_checks import checked, facts_of
from evaltui.runner.plan import RunPlan, SetPlan
from evaltui.runner.python_check import check_python, python_lines
from evaltui.runs.sets import FileSets
from evaltui.text.lines import Line, pad, wrap
from evaltui.text.values import did_you_mean, visible

_NAMES = max(map(len, METRICS))
_INDENT = 4
_BESIDE_THESE = (
    "Beside these, final_session_state is compared for every case that has one, answer_rules the checks of "
    "evaltui.answers, and a config may name metric functions of your own under custom_metrics and "
    "evaltui.criteria."
)


def metrics(options: argparse.Namespace) -> int:
    """Print name, range, meaning and needs of every metric, and why it cannot run here where it cannot.

    With an agent or the file of a set as the `place`, first what its configs ask for. 2 for what cannot be
    read.
    """
    cells = min(width(), MAX_WIDTH)
    place: Path | None = options.place
    if place is None:
        write_lines(_table(facts_of(Path()), cells))
        return 0
    try:
        agent_dir, sets = _agent_and_sets(place, options)
        agent = AgentAddress(agent_dir, None, find_interpreter(agent_dir), options.module, options.url)
    except (InterpreterError, SettingsError) as error:
        return complain("metrics", error)

    checks = checked(RunPlan(agent, tuple(sets))).checks
    table = _table(facts_of(agent_dir, python=agent.python), cells)
    write_lines([*_python(agent), *_metrics_of_sets(place, checks, cells), *table])
    return 0


def _agent_and_sets(place: Path, options: argparse.Namespace) -> tuple[Path, list[SetPlan]]:
    sets = FileSets(place)
    if is_json(place):
        if not place.is_file():
            raise UsageError(f"{place} does not exist")
        above = (folder for folder in place.resolve().parents if is_agent(folder))
        return next(above, place.parent), [sets.open(place)]
    if not (options.url or options.module):
        require_agent(place)
    return place, [
        sets.open(eval_set.path) for eval_set in open_workspace(place, in_project=not options.url).sets
    ]


def _python(agent: AgentAddress) -> Iterator[Line]:
    """The Python of an imported agent, and its missing packages."""
    if agent.url:
        return
    yield from python_lines(check_python(agent))
    yield []


def _metrics_of_sets(place: Path, checks: Sequence[MetricCheck], cells: int) -> Iterator[Line]:
    name = visible(place.name if is_json(place) else agent_folder(place).resolve().name)
    if not checks:
        yield [(f"{name} has no case with a metric", "bold")]
    else:
        yield [(f"Metrics of {name}", "bold")]
        yield from check_lines(checks, cells, every=True)
    yield []
    yield [("All metrics", "bold")]


def _table(facts: Facts, cells: int) -> Iterator[Line]:
    yield [(f"  {'METRIC':{_NAMES}}  RANGE       ASKED FOR IN", "bold")]
    fixes: dict[str, None] = {}
    for info in METRICS.values():
        check = check_metric(info, facts)
        row = f" {info.name:{_NAMES}}  {pad(_range(info), 10)}  {_where_to_ask(info)}"
        yield [("✓", "success") if check.is_fine else ("–", "warning"), (row, "")]
        why_not = "" if check.is_fine else f" Cannot run here: {check.why}."
        needs = f" Needs {' and '.join(info.needs)}." if info.needs else ""
        for line in wrap(
            [(info.meaning, ""), (needs, "muted"), (visible(why_not), "warning")], cells - _INDENT
        ):
            yield [(" " * _INDENT, ""), *line]
        if check.fix:
            fixes[check.fix] = None
    for fix in fixes:
        yield []
        yield from wrap([("– ", "warning"), (f"To run the others: {visible(fix)}.", "")], cells)
    yield []
    yield from wrap([(_BESIDE_THESE, "")], cells)


def _range(info: MetricInfo) -> str:
    if info.interval is None:
        return "0 and up"
    least, greatest = info.interval
    return f"{least:g} to {greatest:g}"


def _where_to_ask(info: MetricInfo) -> str:
    if not info.gates:
        return "always reported"
    return "criteria" if info.source == "adk" else "evaltui.criteria"


_WIDTH = 80


def announce(checks: Sequence[MetricCheck], required: Sequence[str], of_shards: Collection[str] = ()) -> None:
    """Writes to stderr the metrics that do not run as configured; all of them where some are required.

    `of_shards` are the metrics of all shards. Raises UsageError where a required metric cannot run, or is in
    no config.
    """
    if required or not all(check.is_fine for check in checks):
        write_lines(check_lines(checks, _WIDTH, every=bool(required)), to_stderr=True)
    configured = {*of_shards, *(check.metric for check in checks)}
    for name in required:
        if name not in configured:
            raise UsageError(f"--require: no config has {name}{did_you_mean(name, configured)}")
    cannot = (check.metric for check in checks if check.readiness is Readiness.CANNOT)
    if missing := ", ".join(dict.fromkeys(name for name in cannot if name in required)):
        raise UsageError(f"--require: nothing run; {missing} cannot run here")
