"""The options of the pytest plugin. Every pytest loads this: nothing is imported here."""

from __future__ import annotations

from typing import NamedTuple

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
FLAGS = (
    Option(
        "fail-on-regression",
        "",
        "Cases that do not pass are expected failures (xfail) where the baseline failed the same "
        "expectation, or repeats are no evidence",
    ),
    Option("adk-verdicts", "", "Use ADK's verdicts unchanged"),
)
AGENT = Option("agent", "DIR", "Agent of the eval sets (default: the nearest at or above the file)")
NOT_EVALUATED = Option(
    "not-evaluated", "error|skip", "Outcome of a case that could not be evaluated (default: error)"
)
