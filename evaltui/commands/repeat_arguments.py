"""Options that say how often each case is run, and when it passes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evaltui.commands.output import UsageError
from evaltui.commands.parser import Parser, count, pass_if
from evaltui.text.values import MAX_VALUE, cut

if TYPE_CHECKING:
    from evaltui.core.model.confidence import Confidence

# As in core, which is slower to import.
_MAX_RUNS = 50


def add_repeats(parser: Parser) -> None:
    """Options about repeats."""
    add = parser.add_argument
    add("--runs", type=count, metavar="N", help="Run each case N times (default: as in the config, else 1)")
    add("--pass-if", type=pass_if, metavar="all|majority|RATE", help="Pass policy for repeats")
    add(
        "--confidence",
        type=_confidence,
        metavar="P",
        help="Run each case until a sequential test tells with confidence P, e.g. 0.95, whether it passes: "
        "with a pass rate from 0.9 (all), 0.6 (majority) or RATE it does, up to 0.7, 0.4 or RATE - 0.2 not",
    )
    add(
        "--max-runs",
        type=count,
        metavar="N",
        help=f"With --confidence, run a case at most N times: one that is undecided then is not evaluated "
        f"(default: {_MAX_RUNS})",
    )


def _confidence(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0.5 < level < 1:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not between 0.5 and 1, e.g. 0.95")
    return level


def confidence_of(options: argparse.Namespace) -> Confidence | None:
    """How sure verdicts must be; None where the number of runs is fixed. Raises UsageError."""
    if options.confidence is None:
        if options.max_runs is not None:
            raise UsageError("--max-runs needs --confidence P")
        return None
    if options.runs is not None:
        raise UsageError("--runs: --confidence says how often a case is run; leave out one of them")
    from evaltui.core.model.confidence import Confidence

    return Confidence(options.confidence, options.max_runs or _MAX_RUNS)
