"""Moments in words."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from evaltui.text.values import show_moment

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def greenwich(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(0), "0 s ago"),
        # The clock was put back.
        (timedelta(seconds=-9), "0 s ago"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(seconds=3_599), "59 min ago"),
        (timedelta(hours=1), "today 13:05"),
        (timedelta(hours=15), "21 Nov 23:05"),
        (timedelta(days=365), "22 Nov 2025"),
    ],
)
def test_moments(ago, text):
    assert show_moment(NOW - ago, NOW) == text
