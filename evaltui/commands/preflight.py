"""What `evaltui run` says of its metrics before it begins, and whether it begins at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaltui.commands.output import write_lines
from evaltui.commands.usage import UsageError
from evaltui.core.metrics.preflight import MetricCheck, check_lines
from evaltui.core.metrics.requirements import Readiness
from evaltui.text.wording import did_you_mean

_WIDTH = 80


def announce(checks: Sequence[MetricCheck], required: Sequence[str]) -> None:
    """Show on stderr which metrics do not run as they should; all of them where some are required.

    Raises UsageError where one that is required cannot run, or is asked for by no config.
    """
    if required or not all(check.is_fine for check in checks):
        write_lines(check_lines(checks, _WIDTH, every=bool(required)), to_stderr=True)
    asked = {check.metric for check in checks}
    for name in required:
        if name not in asked:
            raise UsageError(f"--require: no config asks for {name}{did_you_mean(name, asked)}")
    if missing := _listed(
        check.metric for check in checks if check.metric in required and check.readiness is Readiness.CANNOT
    ):
        raise UsageError(f"--require: nothing was run, because {missing} cannot run here")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
