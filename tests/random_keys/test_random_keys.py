"""Random input: a round on a sample every day, 20 minutes on all of them with --thorough."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def play(*arguments):
    """In a process of its own: what hangs there ends alone."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.Popen(
            [sys.executable, "-m", "tests.random_keys", *arguments],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            told, _ = ran.communicate()
        finally:
            if ran.poll() is None:
                os.killpg(ran.pid, signal.SIGKILL)
    assert ran.returncode == 0, told[-20_000:]


@pytest.mark.timeout(600)
def test_a_round_of_random_input():
    play("--once", "--seed", "1", "--sample", "home_automation")


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_round_of_random_input_in_a_terminal():
    play("--once", "--seed", "2", "--terminal")


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("sample", ["calculator", "home_automation", "library_desk", "travel_desk"])
def test_five_minutes_of_random_input_on_each_sample(sample):
    play("--seconds", "240", "--seed", "3", "--sample", sample)
    play("--seconds", "60", "--seed", "4", "--sample", sample, "--terminal")
