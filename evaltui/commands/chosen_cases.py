"""The cases that options of a command mean."""

from __future__ import annotations

import argparse

from evaltui.core.model.tags import TagChoice
from evaltui.files.workspace import Selection, open_workspace, select


def chosen_cases(options: argparse.Namespace) -> list[Selection]:
    """Those of the eval sets, `--tag` and `--not-tag`. Raises SelectionError, EvalSetError."""
    tags = TagChoice(tuple(options.tag), tuple(options.not_tag))
    return select(open_workspace(options.agent_dir, config=options.config), options.selectors, tags)
