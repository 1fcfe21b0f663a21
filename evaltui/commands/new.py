"""`evaltui new`: a starter agent with an eval set, in a folder of its own."""

from __future__ import annotations

import json
from pathlib import Path

from evaltui.commands.output import complain
from evaltui.files.eval_sets import SUFFIXES
from evaltui.files.templates import StarterKind, TemplateError, create_starter
from evaltui.text.values import counted

_REMARKS = {
    "agent.py": "the agent, two tools",
    "scripted_llm.py": "the scripted model, offline",
    "test_config.json": "criteria",
}


def new(folder: Path, kind: StarterKind) -> int:
    """Writes a starter and prints its files and the next commands; 2 where nothing could be written."""
    try:
        written = create_starter(folder, kind)
    except TemplateError as error:
        return complain("new", error)
    width = max(len(str(path)) for path in written)
    for path in written:
        print(f"{path!s:{width}}  {_what(path)}".rstrip())
    print("\nNext:")
    print(f"  evaltui {folder}      open the workbench")
    print(f"  evaltui run {folder}  run the cases")
    return 0


def _what(path: Path) -> str:
    """What a file of a starter is; "" where its name says so."""
    if path.name.endswith(SUFFIXES):
        cases = json.loads(path.read_text(encoding="utf-8"))["eval_cases"]
        return counted(len(cases), "case")
    return _REMARKS.get(path.name, "")
