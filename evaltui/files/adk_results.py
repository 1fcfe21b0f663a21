"""The folder in which google-adk keeps the results of eval runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaltui.files.atomic import write_atomically
from evaltui.files.folders import agent_folder

# Source: google-adk 2.13, LocalEvalSetResultsManager.
FOLDER = Path(".adk", "eval_history")
SUFFIX = ".evalset_result.json"


def app_name(agent_dir: Path) -> str:
    """What `adk web` calls an agent: the name of its folder."""
    return agent_folder(agent_dir).resolve().name


def write_adk_result(agent_dir: Path, result: dict[str, Any]) -> Path:
    """Keep an `EvalSetResult` under its id; returns the file.

    Raises OSError where the agent's folder cannot be written.
    """
    folder = agent_folder(agent_dir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['eval_set_result_id']}{SUFFIX}"
    # Not indented: that takes several times as long, which is felt with thousands of cases.
    write_atomically(path, json.dumps(result, ensure_ascii=False) + "\n")
    return path
