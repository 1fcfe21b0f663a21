"""The cases that options of a command mean."""

from __future__ import annotations

import argparse

from evaltui.commands.output import write_stderr
from evaltui.core.model.tags import TagChoice
from evaltui.files.workspace import Selection, open_workspace, passed_over, select
from evaltui.text.values import visible


def chosen_cases(options: argparse.Namespace) -> list[Selection]:
    """Those of the eval sets, `--tag` and `--not-tag`; names files that are not read on standard error.

    Raises SelectionError, EvalSetError.
    """
    tags = TagChoice(tuple(options.tag), tuple(options.not_tag))
    workspace = open_workspace(options.agent_dir, config=options.config)
    chosen = select(workspace, options.selectors, tags)
    for one in passed_over(workspace, options.selectors):
        if not one.is_set:
            write_stderr(f"evaltui: {visible(str(one.path))}: {one.reason}")
    return chosen
