"""`evaltui run`: the agent's process first, since importing an agent takes longest; then everything else."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaltui.commands.reporting import ReportTarget, UsageError, parse_targets
from evaltui.core.problems import EvalSetError
from evaltui.files.workspace import SelectionError, agents_in
from evaltui.runner.pool import HostSettings, start_host
from evaltui.runner.supervisor import IMPORT_TIMEOUT

if TYPE_CHECKING:
    from evaltui.commands.job import Job

WRONG_USE = 2


def run(options: argparse.Namespace) -> int:
    """Run what the options select and report; returns the exit code."""
    try:
        targets = parse_targets(options.report)
        if not options.agent_dir.exists():
            raise UsageError(f"{options.agent_dir} does not exist")
        if several := agents_in(options.agent_dir):
            raise UsageError(
                f"{options.agent_dir} holds several agents: {', '.join(several)}; name one of them"
            )
        return asyncio.run(_run(options, targets))
    except (UsageError, SelectionError, EvalSetError) as error:
        for line in str(error).splitlines():
            print(f"evaltui run: {line}", file=sys.stderr)
        return WRONG_USE


async def _run(options: argparse.Namespace, targets: Sequence[ReportTarget]) -> int:
    first = start_host(
        HostSettings(options.agent_dir, options.agent, options.timeout, IMPORT_TIMEOUT, time.monotonic())
    )
    try:
        job = await asyncio.to_thread(_prepare, options, targets)
    except BaseException:
        await first.host.kill()
        raise
    return await job.run(first)


def _prepare(options: argparse.Namespace, targets: Sequence[ReportTarget]) -> Job:
    from evaltui.commands.job import prepare

    return prepare(options, targets)
