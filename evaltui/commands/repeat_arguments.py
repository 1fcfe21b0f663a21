"""The number of runs of each case, from the options."""

from __future__ import annotations

import argparse

from evaltui.commands.options import MAX_RUNS
from evaltui.commands.output import UsageError
from evaltui.core.model.confidence import Confidence


def confidence_of(options: argparse.Namespace) -> Confidence | None:
    """The confidence that verdicts must have; None for a fixed number of runs. Raises UsageError."""
    if options.confidence is None:
        if options.max_runs is not None:
            raise UsageError("--max-runs needs --confidence P")
        return None
    if options.runs is not None:
        raise UsageError("--runs: --confidence says how often a case is run; leave out one of them")

    return Confidence(options.confidence, options.max_runs or MAX_RUNS)
