"""What a file of an old format becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.old_formats import left_out, texts_without_author
from evaltui.core.model.problems import Problem
from evaltui.files.eval_sets import set_name
from evaltui.files.json_text import locate, parse, read_text

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet


def changes(old: Path) -> list[Problem]:
    """Warnings for what a converted set has not, or has otherwise than the file of an old format."""
    try:
        text = read_text(old)
    except OSError:
        return []
    data = parse(text) if isinstance(text, str) else text
    if not isinstance(text, str) or isinstance(data, Problem):
        return []
    return locate([*texts_without_author(data), *left_out(data)], text, str(old))


def migrated_text(eval_set: EvalSet, new: Path) -> str:
    """The text of a converted set as the file `new`.

    The set is named after the new file: google-adk looks sets up by their file's name.
    """
    # Models load slowly, and reading this module must not wait for them.
    from evaltui.core.model.eval_set import dump

    named = eval_set.model_copy(update={"eval_set_id": set_name(new), "name": set_name(new)})
    return json.dumps(dump(named), indent=2, ensure_ascii=False) + "\n"
