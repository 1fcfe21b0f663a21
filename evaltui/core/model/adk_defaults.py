"""Models that google-adk asks where a config names none, as the installed version has them."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple


class DefaultModels(NamedTuple):
    """Names of models; without an argument those of google-adk 2.13."""

    judge: str = "gemini-2.5-flash"
    simulated_user: str = "gemini-2.5-flash"


def default_models_in(adk: Path) -> DefaultModels:
    """The models in the source of google-adk, in its folder; those of 2.13 where it does not tell.

    The source is read, since to import it takes seconds.
    """
    sources = {
        "judge": ("evaluation/eval_metrics.py", "JudgeModelOptions", "judge_model"),
        "simulated_user": (
            "evaluation/simulation/llm_backed_user_simulator.py",
            "LlmBackedUserSimulatorConfig",
            "model",
        ),
    }
    models = {role: _default(adk / file, owner, name) for role, (file, owner, name) in sources.items()}
    return DefaultModels(**{role: model for role, model in models.items() if model})


def _default(file: Path, owner: str, name: str) -> str:
    """The text that a field of a class has by default; "" where the file does not tell."""
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    of_class = re.search(rf"^class {owner}\b.*?(?=^\S|\Z)", source, re.MULTILINE | re.DOTALL)
    field = rf'^  +{name}: [^\n=]*=\s*(?:Field\(\s*default=)?"([^"\n]+)"'
    default = re.search(field, of_class[0], re.MULTILINE) if of_class else None
    return default[1] if default else ""


@cache
def default_models() -> DefaultModels:
    """The models of the google-adk that is installed beside evaltui, else those of 2.13."""
    try:
        spec = find_spec("google.adk")
    except ModuleNotFoundError:
        spec = None
    folders = spec.submodule_search_locations if spec else None
    return default_models_in(Path(next(iter(folders)))) if folders else DefaultModels()
