"""The run that a command resumes, and the reasons why it cannot be."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaltui.commands.output import UsageError
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.core.model.variants import Variant
from evaltui.project.variants import hidden_in
from evaltui.runs.history import find_run
from evaltui.runs.resuming import CompleteError, ResumeError, resumable_header
from evaltui.runs.store import RunStore, run_id


class NothingLeftError(UsageError):
    """The run to resume is complete."""


# Options that a run was begun with, and the flag of each.
_BEGUN_WITH = {
    "config": "--config",
    "initial_session": "--initial-session",
    "runs": "--runs",
    "pass_if": "--pass-if",
    "confidence": "--confidence",
    "max_runs": "--max-runs",
    "agent": "--agent",
    "failed": "--failed",
    "tag": "--tag",
    "not_tag": "--not-tag",
    "shard": "--shard",
    "durations": "--durations",
    "adk_verdicts": "--adk-verdicts",
    "record": "--record",
    "tools": "--tools",
}
_RUN = {"selectors": "SET", **_BEGUN_WITH}
_SCORE = {
    "traces": "TRACE",
    "selectors": "--sets",
    "case_from": "--case-from",
    "only_paired": "--only-paired",
    **_BEGUN_WITH,
}


def run_to_resume(options: argparse.Namespace, store: RunStore, *, of_traces: bool) -> Path:
    """The log to resume. Raises SelectionError without a run, UsageError for options that it has stored."""
    path = find_run(store, options.resume or "last")
    require_own_options(options, of_traces=of_traces)
    return path


def variant_of_resumed(options: argparse.Namespace, store: RunStore) -> Variant | None:
    """The variant of the run to resume; None for the agent as it is. Raises UsageError, SelectionError."""
    path = find_run(store, options.resume or "last")
    try:
        variant = resumable_header(path).variant
    except (ResumeError, OSError, ValueError):
        # Told by who resumes it.
        return None
    if variant is not None and (name := hidden_in(variant)):
        raise UsageError(
            f"{resume_option(options)}: the value of {name} is secret, so the run log does not have it"
        )
    return variant


def require_own_options(options: argparse.Namespace, *, of_traces: bool) -> None:
    """Raises UsageError for options that the run has stored."""
    flags = _SCORE if of_traces else _RUN
    if conflicting := [flag for name, flag in flags.items() if getattr(options, name)]:
        raise UsageError(
            f"{resume_option(options)}: the run keeps its own options; leave out {', '.join(conflicting)}"
        )


@contextmanager
def refusing(options: argparse.Namespace, path: Path) -> Iterator[None]:
    """Turns each reason why a run cannot be resumed into a UsageError."""
    option = resume_option(options)
    try:
        yield
    except ResumeError as error:
        run = run_id(path)
        refusal = f" cannot be resumed: {error}. Run all cases instead, with --baseline {run} to compare"
        kind = NothingLeftError if isinstance(error, CompleteError) else UsageError
        raise kind(f"{option}: run {run}{refusal if error.differs else f': {error}'}") from error
    except (EvalSetError, SelectionError):
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: {error}") from error


def resume_option(options: argparse.Namespace) -> str:
    """The option that resumes a run."""
    return "--resume" if options.resume else "--retry-errors"
