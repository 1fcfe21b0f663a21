"""Signals that ask for the end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from evaltui.runner import interrupts as module
from evaltui.runner.interrupts import Interrupts, run_interruptible

ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("first", ALL)
def test_the_first_counts_and_others_change_nothing(first):
    before = [signal.getsignal(number) for number in ALL]
    heard: list[signal.Signals | None] = []
    with Interrupts(lambda: heard.append(interrupts.received)) as interrupts:
        signal.raise_signal(first)
        for number in ALL:
            signal.raise_signal(number)
        assert heard == [first]
        interrupts.listen_again()
        signal.raise_signal(signal.SIGTERM)
        assert heard == [first, signal.SIGTERM]
    assert [signal.getsignal(number) for number in ALL] == before


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            assert interrupts.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", ALL)
def test_what_is_interrupted_cleans_up_undisturbed(number):
    done = []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.sleep(100)
        finally:
            for again in ALL:
                signal.raise_signal(again)
            await asyncio.sleep(0.01)
            done.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work())
    assert done == ["cleaned up"]


def test_what_is_interrupted_may_return_all_the_same():
    async def work() -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return 130
        return 0

    assert run_interruptible(work()) == 130


def test_a_clean_up_that_does_not_end_is_ended(monkeypatch, capfd):
    forced = threading.Event()
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        forced.set()

    monkeypatch.setattr(module, "FORCE_AFTER", 0.0)
    monkeypatch.setattr(os, "_exit", leave)
    with Interrupts(lambda: None):
        signal.raise_signal(signal.SIGTERM)
        assert forced.wait(10)
    assert codes == [130]
    assert "ended by force" in capfd.readouterr().err
