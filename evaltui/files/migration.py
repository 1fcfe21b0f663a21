"""What a file of an old format becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.files.eval_sets import set_name

if TYPE_CHECKING:
    from evaltui.core.evalset import EvalSet


def migrated_text(eval_set: EvalSet, new: Path) -> str:
    """The text of a converted set as the file `new`.

    The set is named after the new file: google-adk looks sets up by their file's name.
    """
    # Models load slowly, and reading this module must not wait for them.
    from evaltui.core.evalset import dump

    named = eval_set.model_copy(update={"eval_set_id": set_name(new), "name": set_name(new)})
    return json.dumps(dump(named), indent=2, ensure_ascii=False) + "\n"
