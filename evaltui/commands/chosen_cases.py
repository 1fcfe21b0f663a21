"""The cases that the options of a command select."""

from __future__ import annotations

import argparse

from evaltui.commands.output import write_stderr
from evaltui.core.model.tags import TagChoice
from evaltui.project.workspace import Selection, Workspace, open_workspace, passed_over, select
from evaltui.text.values import visible


def chosen_cases(options: argparse.Namespace) -> list[Selection]:
    """The cases that selectors, `--tag` and `--not-tag` choose; names skipped files on standard error.

    Raises SelectionError, EvalSetError.
    """
    workspace = open_workspace(options.agent_dir, config=options.config, in_project=not options.url)
    chosen = chosen_in(workspace, options)
    for skipped in passed_over(workspace, options.selectors):
        if not skipped.is_set:
            write_stderr(f"evaltui: {visible(str(skipped.path))}: {skipped.reason}")
    return chosen


def chosen_in(workspace: Workspace, options: argparse.Namespace) -> list[Selection]:
    """The cases that they choose in a workspace. Raises SelectionError, EvalSetError."""
    return select(workspace, options.selectors, TagChoice(tuple(options.tag), tuple(options.not_tag)))
