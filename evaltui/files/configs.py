"""Which config applies to an eval set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.config import EvalConfig
from evaltui.core.problems import EvalSetError, Problem, Severity
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.json_text import duplicate_keys, locate, parse, read_text


@dataclass(frozen=True)
class ConfigInUse:
    """A config, where it came from, and its warnings. `defaulted`: no file, so ADK's defaults apply."""

    path: Path | None
    config: EvalConfig
    defaulted: bool
    problems: tuple[Problem, ...] = ()


def find_config(set_path: Path, explicit: Path | None = None) -> ConfigInUse:
    """The explicit config if there is one, else the `test_config.json` beside the set, else ADK's defaults.

    Raises EvalSetError for a file that is not a config, and for an explicit one that does not exist: a
    config that was meant to apply is never replaced by the defaults.
    """
    path = explicit or set_path.parent / CONFIG_NAME
    if explicit is None and not path.exists():
        return ConfigInUse(None, EvalConfig.default(), defaulted=True)
    config, problems = read_config(path)
    if config is None:
        raise EvalSetError([problem for problem in problems if problem.severity is Severity.ERROR])
    return ConfigInUse(path, config, defaulted=False, problems=tuple(problems))


def read_config(path: Path) -> tuple[EvalConfig | None, list[Problem]]:
    """The config of a file, None where there are errors, and every problem it has; never raises."""
    from evaltui.core.validation import validate_config

    try:
        text = read_text(path)
    except FileNotFoundError:
        return None, [Problem(Severity.ERROR, (), "no such config file", file=str(path))]
    except OSError as error:
        return None, [Problem(Severity.ERROR, (), f"cannot be read: {error.strerror}", file=str(path))]
    data = parse(text) if isinstance(text, str) else text
    if isinstance(text, Problem) or isinstance(data, Problem):
        return None, [replace(data, file=str(path))]
    config, problems = validate_config(data)
    # Of two criteria with one name, only one would be scored.
    twice = duplicate_keys(text, str(path), Severity.ERROR)
    return None if twice else config, [*twice, *locate(problems, text, str(path))]
