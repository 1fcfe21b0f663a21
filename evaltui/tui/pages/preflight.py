"""What was known of a run's metrics before it began."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.metrics.preflight import MetricCheck
from evaltui.reports.preflight import check_lines
from evaltui.tui.pages.writer import Page


def write_checks(page: Page, checks: Sequence[MetricCheck]) -> None:
    page.lines += check_lines(checks, page.width, every=True)
