"""Which config applies to an eval set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.files.config_files import config_above, config_file, configs_near
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.json_text import duplicate_keys, locate, parse, read_text


@dataclass(frozen=True)
class ConfigInUse:
    """A config, and where it came from."""

    path: Path | None
    """None where ADK's defaults apply."""
    config: EvalConfig
    problems: tuple[Problem, ...] = ()
    """Its warnings."""
    passed_over: Path | None = None
    """The `test_config.json` above the set, which is for other sets; None where there is none."""

    @property
    def defaulted(self) -> bool:
        """Whether there is no file, so that ADK's defaults apply."""
        return self.path is None


def find_config(set_path: Path, explicit: Path | None = None, edited: str | None = None) -> ConfigInUse:
    """The explicit config if there is one, else the one that `config_file` finds, else ADK's defaults.

    `edited` is the text of that file while it is being edited, whatever is on disk. Raises EvalSetError
    for a file that is not a config, for an explicit one that does not exist, and where several could be
    meant: a config that was meant to apply is never replaced by the defaults.
    """
    path = config_file(set_path, explicit)
    if explicit is None and edited is None and not path.exists():
        problems = choice_problems(set_path)
        if errors := [one for one in problems if one.severity is Severity.ERROR]:
            raise EvalSetError(errors)
        return ConfigInUse(None, EvalConfig.default(), tuple(problems), config_above(set_path))
    config, problems = read_config(path) if edited is None else config_of(path, edited.removeprefix("\ufeff"))
    if config is None:
        raise EvalSetError([problem for problem in problems if problem.severity is Severity.ERROR])
    return ConfigInUse(path, config, tuple(problems))


def _passed_over(set_path: Path, above: Path) -> Problem:
    message = (
        f"scores the sets beside it only, so {set_path.name} is scored by ADK's defaults; --config {above} "
        f"uses it for all, a {CONFIG_NAME} beside the set for that one"
    )
    return Problem.warning((), message, file=str(above))


def unclear_config(set_path: Path) -> Problem | None:
    """What is wrong where several files could be the config of a set; None where it is clear which is."""
    found = configs_near(set_path)
    if (set_path.parent / CONFIG_NAME).exists() or len(found) < 2:
        return None
    names = " and ".join(one.name for one in found)
    message = (
        f"it is not clear which config scores {set_path.name}: {names}; name one with --config, or make a "
        f"{CONFIG_NAME} beside the set"
    )
    return Problem.error((), message, file=str(found[0].parent))


def choice_problems(set_path: Path) -> list[Problem]:
    """What is to be known of how the config of a set is chosen: that it is unclear, or one is passed over."""
    if config_file(set_path).exists():
        return []
    if problem := unclear_config(set_path):
        return [problem]
    above = config_above(set_path)
    return [] if above is None else [_passed_over(set_path, above)]


def read_config(path: Path) -> tuple[EvalConfig | None, list[Problem]]:
    """The config of a file, None where there are errors, and every problem it has; never raises."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        return None, [Problem.error((), "no such config file", file=str(path))]
    except OSError as error:
        return None, [Problem.error((), f"cannot be read: {error.strerror}", file=str(path))]
    return (None, [replace(text, file=str(path))]) if isinstance(text, Problem) else config_of(path, text)


def config_of(path: Path, text: str) -> tuple[EvalConfig | None, list[Problem]]:
    """As `read_config`, of a file with this text."""
    from evaltui.core.metrics.config_validation import validate_config

    data = parse(text)
    if isinstance(data, Problem):
        return None, [replace(data, file=str(path))]
    config, problems = validate_config(data)
    # Of two criteria with one name, only one would be scored.
    twice = duplicate_keys(text, str(path), Severity.ERROR)
    return None if twice else config, [*twice, *locate(problems, text, str(path))]
