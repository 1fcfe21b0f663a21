"""Options, markers and terminal of the pytest plugin. Every pytest loads it: it imports nothing of ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

FAILURE = "evaltui_failure"
"""Where a report that a worker of pytest-xdist sends has the lines of a failing case."""


class Option(NamedTuple):
    """An option of pytest that has a twin in `evaltui run`."""

    name: str
    """The name in `evaltui run`; `--evaltui-NAME` here, `evaltui_NAME` in the ini file."""
    metavar: str
    help: str

    @property
    def dest(self) -> str:
        return "evaltui_" + self.name.replace("-", "_")


RUN_OPTIONS = (
    Option("config", "FILE", "Use this config for all eval sets"),
    Option("runs", "N", "Run each case N times, within one test"),
    Option("pass-if", "all|majority|RATE", "Pass policy for repeats"),
    Option(
        "confidence",
        "P",
        "Run each case, within one test, until a sequential test tells with confidence P, e.g. 0.95, whether "
        "it passes",
    ),
    Option("max-runs", "N", "With --evaltui-confidence, run a case at most N times (default: 50)"),
    Option("parallel", "N", "Number of cases at once"),
    Option("workers", "N", "Number of agent processes"),
    Option("timeout", "S", "Seconds per case"),
    Option("record", "MODE", "Model calls: auto, replay, record or off"),
    Option("tools", "MODE", "Tool calls: live, record or stub"),
    Option("results-dir", "DIR", "Folder of stored runs"),
    Option("python", "PYTHON", "Python of the agent"),
    Option("baseline", "RUN", "Compare with this run, case by case"),
    Option("alpha", "A", "Highest p that makes a regression of a repeated case that broke (default: 0.05)"),
)
GATE = Option(
    "fail-on-regression",
    "",
    "Cases that do not pass are expected failures (xfail) where the baseline failed the same "
    "expectation, or repeats are no evidence",
)
FLAGS = (
    GATE,
    Option("adk-verdicts", "", "Use ADK's verdicts unchanged"),
)
AGENT = Option("agent", "DIR", "Agent of the eval sets (default: the nearest at or above the file)")
NOT_EVALUATED = Option(
    "not-evaluated", "error|skip", "Outcome of a case that could not be evaluated (default: error)"
)


def has_terminal(config: pytest.Config) -> bool:
    """Whether somebody can be asked."""
    _release(config)
    return sys.stdin.isatty()


def ask(config: pytest.Config, question: str) -> str:
    """Asks a question and returns the answer in lower case; "" where the terminal is gone. Raises
    KeyboardInterrupt."""
    _release(config)
    try:
        return input(question).strip().lower()
    except EOFError:
        return ""


def _release(config: pytest.Config) -> None:
    """Give back what pytest has captured. It begins anew by itself with the next phase of a test."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)


OF_USER = pytest.StashKey[frozenset[str]]()
"""The markers that the user has registered in the ini file."""


def registered(config: pytest.Config) -> Iterator[str]:
    """The names of the markers that are registered so far."""
    for line in config.getini("markers"):
        yield line.partition(":")[0].partition("(")[0].strip()


def marker_of(config: pytest.Config, tag: str) -> pytest.MarkDecorator | None:
    """The marker of a tag, registered if need be; None where the name is that of a marker of pytest or of a
    plugin, such as `skip`: the tag must not do what that does."""
    if tag.startswith("_"):
        # Not a name of a marker.
        return None
    ours = config.stash.setdefault(_OURS, set())
    if tag not in ours and tag not in config.stash.get(OF_USER, frozenset()):
        if tag in registered(config):
            return None
        config.addinivalue_line("markers", f"{tag}: eval cases with this tag")
        ours.add(tag)
    marker: pytest.MarkDecorator = getattr(pytest.mark, tag)
    return marker


_OURS = pytest.StashKey[set[str]]()
