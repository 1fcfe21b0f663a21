"""The config of an eval set: its file, chosen by names and content, and its model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.datasets import OWN_KEY
from evaltui.core.model.eval_config import METRICS_TO_RUN, definitions_of, from_eval_config
from evaltui.core.model.file_kinds import is_eval_config
from evaltui.core.model.json_values import values_in
from evaltui.core.model.problems import (
    EvalSetError,
    Finding,
    LintRule,
    Problem,
    errors_in,
    has_error,
    likely_typos,
    problems_of,
)
from evaltui.documents.files import Stamp, is_settled, stamp_in
from evaltui.documents.json_text import duplicate_keys, lines_of, locate, parse, read_text, text_or_problem
from evaltui.documents.yaml_text import YAML_SUFFIXES, YamlText
from evaltui.project.agents import is_agent
from evaltui.project.eval_sets import data_of, read_data, set_kind
from evaltui.project.folders import CONFIG_NAME, is_json, is_of_tests, parent_of, project_root
from evaltui.project.modules import lacks_function, module_near
from evaltui.project.run_settings import ConfigChoice
from evaltui.text.values import nearest_word

if TYPE_CHECKING:
    from evaltui.core.model.config import EvalConfig

UNCLEAR_CONFIG = LintRule("unclear-config", "Several configs could apply", blocks=True)
UNUSED_CONFIG = LintRule("unused-config", "A config does not apply", blocks=False)

# Words in the names of configs that people pass to `adk eval --config_file_path`.
_WORDS = ("config", "criteri")
# How near a name is, from 0 to 1: `tsconfig.json` is of other programs.
_NEARLY = 0.92
# `test_config.json.bak`, `test_config.yaml`; a `test_config.py` has tests.
_LIKE_CONFIG = re.compile(r"test_config\.(json.+|ya?ml|toml)", re.IGNORECASE)
# Where agents-cli 1.11.0 looks, in the root of a project.
_OF_AGENTS_CLI = ("tests/eval", "eval")
EVAL_CONFIG_NAMES = ("eval_config.yaml", "eval_config.yml", "eval_config.json")


def config_file(set_path: Path, explicit: Path | None = None) -> Path:
    """The file that scores a set, or would if there were one.

    That is the explicit one, else the `test_config.json` beside the set, else the only other file with
    `criteria` in the nearest folder that has any, from beside the set up to the root of its project. Where
    nothing or more than one is found, the `test_config.json` that could be made beside it. For a dataset of
    agents-cli it is the nearest `eval_config.yaml`, otherwise the one that agents-cli finds in the project.
    """
    beside = set_path.parent / CONFIG_NAME
    if explicit is not None:
        return explicit
    if os.path.lexists(beside):
        return beside
    candidates = configs_near(set_path)
    return candidates[0] if len(candidates) == 1 else beside


def config_files(set_paths: Iterable[Path], explicit: Path | None = None) -> dict[Path, Path]:
    """The config file of each set; the sets of a folder share it."""
    by_folder: dict[tuple[Path, bool], Path] = {}
    configs: dict[Path, Path] = {}
    for path in set_paths:
        group = (path.parent, set_kind(path) == "dataset")
        if group not in by_folder:
            by_folder[group] = config_file(path, explicit)
        configs[path] = by_folder[group]
    return configs


def configs_near(set_path: Path) -> list[Path]:
    """The files with `criteria` that could be passed as `--config`, of the nearest folder that has any; of a
    dataset the config of agents-cli."""
    if set_kind(set_path) == "dataset":
        root = project_root(set_path.parent)
        usual = [] if root is None else [root / folder for folder in _OF_AGENTS_CLI]
        paths = (folder / name for folder in (*_folders_of(set_path), *usual) for name in EVAL_CONFIG_NAMES)
        return list(islice(filter(is_eval_config_file, paths), 1))
    in_folders = (list(filter(is_config, _like_configs_in(folder))) for folder in _folders_of(set_path))
    return next(filter(None, in_folders), [])


def is_eval_config_file(path: Path) -> bool:
    """Whether a file is a config of agents-cli by its content or its name, in JSON with a mistake in it."""
    data = read_data(path)
    is_no_json = isinstance(data, Problem) or path.suffix in YAML_SUFFIXES
    if path.name in EVAL_CONFIG_NAMES and is_no_json:
        return os.path.lexists(path)
    return not isinstance(data, Problem) and is_eval_config(data)


def config_above(set_path: Path) -> Path | None:
    """The nearest `test_config.json` above a set, which, as in ADK, applies to the sets beside it only."""
    above = (folder / CONFIG_NAME for folder in _folders_of(set_path) if folder != set_path.parent)
    return next((path for path in above if path.is_file()), None)


def is_config(path: Path) -> bool:
    """Whether a file is a config by name and content; with the usual name, for any content."""
    if path.name == CONFIG_NAME:
        return True
    if not is_json(path) or not _is_named_so(path.name):
        return False
    try:
        stat = path.stat()
    except OSError:
        # Who reads it says why it cannot be: it may have been meant to apply.
        return os.path.lexists(path)
    return _has_criteria(path, stamp_in(stat))


def _folders_of(set_path: Path) -> Iterator[Path]:
    """From beside a set up to the root of its project; without one, only out of folders of tests."""
    folder = set_path.parent
    root = project_root(folder)
    yield folder
    while root in folder.absolute().parents if root is not None else is_of_tests(folder):
        folder = parent_of(folder)
        yield folder


def _like_configs_in(folder: Path) -> tuple[Path, ...]:
    try:
        stamp = stamp_in(folder.stat())
    except OSError:
        return ()
    # A folder that changed just now may change again and look the same.
    candidates = _candidates if is_settled(stamp) else _candidates.__wrapped__
    return candidates(folder, stamp)


def _is_named_so(name: str) -> bool:
    return name != CONFIG_NAME and any(word in name.lower() for word in _WORDS)


def _is_nearly_usual(name: str) -> bool:
    """Whether a name is nearly one that configs usually have, such as `eval-config.yaml`."""
    usual = (CONFIG_NAME, *EVAL_CONFIG_NAMES)
    return bool(_LIKE_CONFIG.fullmatch(name) or nearest_word(name.lower(), usual, likeness=_NEARLY))


@lru_cache(maxsize=1_000)
def _candidates(folder: Path, stamp: Stamp) -> tuple[Path, ...]:
    """The files of a folder that are named like configs. `stamp` is that of the folder, so that many sets
    in it cost one look."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return ()
    return tuple(
        folder / name
        for name in names
        if name != CONFIG_NAME and (_is_named_so(name) if is_json(Path(name)) else _is_nearly_usual(name))
    )


@lru_cache(maxsize=1_000)
def _has_criteria(path: Path, stamp: Stamp) -> bool:
    try:
        text = read_text(path)
    except OSError:
        return True
    if not isinstance(text, str) or '"criteria"' not in text:
        # Cut off, or in another encoding: by its name it was meant to apply.
        return _is_nearly_usual(path.name) and isinstance(read_data(path), Problem)
    data = parse(text)
    # A mistake in its JSON makes it no other file: it was meant to apply.
    return isinstance(data, Problem) or (
        isinstance(data, dict) and "criteria" in data and not data.keys() & {"eval_cases", "evalCases"}
    )


class UnreadableConfig(dict[str, Any]):
    """A placeholder for a config that cannot be read: each access raises the reason."""

    def __init__(self, error: EvalSetError) -> None:
        super().__init__()
        self._error = error

    def _refuse(self, *_: object) -> Any:
        raise self._error

    get = __contains__ = __getitem__ = __iter__ = _refuse


@dataclass(frozen=True)
class ConfigInUse:
    """A config with its source."""

    path: Path | None
    """The file; None for ADK's defaults, and for a config from Python code."""
    config: EvalConfig
    problems: tuple[Problem, ...] = ()
    """Its warnings."""
    passed_over: Path | None = None
    """A config near the set that is not used; None for none."""
    is_given: bool = False
    """Whether it comes from Python code."""

    @property
    def defaulted(self) -> bool:
        """Whether ADK's defaults apply."""
        return self.path is None and not self.is_given


def find_config(
    set_path: Path,
    explicit: Path | None = None,
    edited: str | None = None,
    choice: ConfigChoice = "nearest",
) -> ConfigInUse:
    """The explicit config if there is one, else the one that `config_file` finds, else ADK's defaults.

    `edited` is the text of that file while it is being edited, whatever is on disk. Raises EvalSetError
    for a file that is not a config, for an explicit one that does not exist, and where several could be
    meant: a config that was meant to apply is never replaced by the defaults.
    """
    from evaltui.core.model.config import EvalConfig

    beside = set_path.parent / CONFIG_NAME
    # A link to no file is not read as a config, nor passed over.
    is_there = os.path.lexists(beside)
    if explicit is None and (choice == "defaults" or (choice == "beside" and not is_there)):
        unread = [beside] if is_there else configs_near(set_path)
        problems = [_not_read_by_adk(set_path, path) for path in unread]
        not_used = unread[0] if unread else config_above(set_path)
        return ConfigInUse(None, EvalConfig.default(), tuple(problems), not_used)
    path = config_file(set_path, explicit)
    if explicit is None and edited is None and not os.path.lexists(path):
        problems = choice_problems(set_path)
        if errors := errors_in(problems):
            raise EvalSetError(errors)
        default = EvalConfig.default()
        if set_kind(set_path) == "dataset":
            # Most datasets state one of the two, or none.
            default.evaltui.optional = list(default.criteria)
        return ConfigInUse(None, default, tuple(problems), config_above(set_path))
    config, problems = read_config(path) if edited is None else config_of(path, edited.removeprefix("\ufeff"))
    if config is None:
        raise EvalSetError(errors_in(problems))
    if explicit is None and edited is None:
        problems += choice_problems(set_path)
    return ConfigInUse(path, config, tuple(problems))


def scores_outputs(set_path: Path) -> bool:
    """Whether the config of a set scores outputs as responses; False where the config is unreadable."""
    try:
        return find_config(set_path).config.evaltui.outputs == "score"
    except EvalSetError:
        return False


def find_config_for_test_file(test_file: str | Path) -> EvalConfig:
    """The config that scores a file of eval cases, ADK's defaults without one. Raises EvalSetError."""
    return find_config(Path(test_file)).config


def choice_problems(set_path: Path) -> list[Problem]:
    """Problems with the choice of a set's config: it is unclear, or a config is passed over."""
    return problems_of("choice of config", set_path)


@UNCLEAR_CONFIG.checks("choice of config")
def _several_configs(set_path: Path) -> Iterator[Finding]:
    configs = configs_near(set_path)
    if len(configs) > 1 and not os.path.lexists(set_path.parent / CONFIG_NAME):
        names = " and ".join(config.name for config in configs)
        message = (
            f"several configs for {set_path.name}: {names}. Choose one with --config, "
            f"or create {CONFIG_NAME} beside the set"
        )
        yield (), message, str(configs[0].parent)


@UNUSED_CONFIG.checks("choice of config")
def _unused_configs(set_path: Path) -> Iterator[Finding]:
    """A config above that is for the sets beside it, and files beside the set that are named like configs."""
    used = config_file(set_path)
    if len(configs_near(set_path)) > 1 or (used.name == CONFIG_NAME and os.path.lexists(used)):
        return
    if not os.path.lexists(used) and (above := config_above(set_path)) is not None:
        message = (
            f"scores the sets beside it only, so {set_path.name} is scored by ADK's defaults; "
            f"--config {above} uses it for all, a {CONFIG_NAME} beside the set for that one"
        )
        yield (), message, str(above)
    usual = EVAL_CONFIG_NAMES[0] if set_kind(set_path) == "dataset" else f"{CONFIG_NAME} and is JSON"
    for folder in _folders_of(set_path):
        for path in (path for path in _like_configs_in(folder) if path != used):
            if not is_json(path):
                yield (), f"not read for {set_path.name}: its config is called {usual}", str(path)
            elif isinstance(text := text_or_problem(path), Problem):
                yield (), f"not read for {set_path.name}: {text.message}", str(path)
            elif _lacks_criteria(path):
                yield (), f"not read for {set_path.name}: it has no criteria", str(path)
        if folder == used.parent and os.path.lexists(used):
            return


def _lacks_criteria(path: Path) -> bool:
    """Whether a file has other keys of a config than `criteria`, right or nearly."""
    data = read_data(path)
    if not isinstance(data, dict) or "criteria" in data:
        return False
    keys = (("criteria",), (METRICS_TO_RUN,), (OWN_KEY,))
    return is_eval_config(data) or OWN_KEY in data or any(likely_typos(data, keys))


def _not_read_by_adk(set_path: Path, path: Path) -> Problem:
    message = (
        f"with --adk-verdicts not read for {set_path.name}, as in adk eval: ADK's defaults score the set; "
        f"--config {path} uses this file"
    )
    return UNUSED_CONFIG.at((), message, str(path))


def read_config(path: Path) -> tuple[EvalConfig | None, list[Problem]]:
    """The config of a file, None for errors, and all its problems; never raises."""
    text = text_or_problem(path)
    return (None, [replace(text, file=str(path))]) if isinstance(text, Problem) else config_of(path, text)


def config_of(path: Path, text: str) -> tuple[EvalConfig | None, list[Problem]]:
    """The config in the text of a file, and its problems; None for errors."""
    from evaltui.core.metrics.config_validation import validate_config

    data = data_of(path, text)
    if isinstance(data, Problem):
        return None, [replace(data, file=str(path))]
    is_adks = isinstance(data, dict) and "criteria" in data
    if is_eval_config(data) or (path.suffix in YAML_SUFFIXES and not is_adks):
        return _of_agents_cli(path, text, data)
    config, problems = validate_config(data)
    twice = [] if path.suffix in YAML_SUFFIXES else duplicate_keys(text)
    missing = [] if config is None else list(_missing_functions(path, data, config))
    return None if twice or missing else config, located_in_config(path, text, [*twice, *problems, *missing])


def _missing_functions(path: Path, data: Any, config: EvalConfig) -> Iterator[Problem]:
    """Errors for functions that a module of the agent's folder does not have."""
    from evaltui.core.metrics.requirements import functions_of

    names = [function.rpartition(".")[::2] for function in functions_of(config)]
    # An agent is no root of a file system.
    folders = path.resolve().parents[:-1] if names else ()
    folder = next(filter(is_agent, folders), None)
    if folder is None:
        return
    for module, function in names:
        file = module_near(module, folder)
        if file is None or not file.is_relative_to(folder) or not lacks_function(file, function):
            continue
        for place, value in values_in(data):
            if value in (f"{module}.{function}", f"{module}:{function}"):
                yield Problem.error(place, f"{file.relative_to(folder)} has no function {function}")


def _of_agents_cli(path: Path, text: str, data: Any) -> tuple[EvalConfig | None, list[Problem]]:
    """The config in a file of agents-cli, and its problems."""
    from evaltui.core.metrics.config_validation import validate_config

    places = YamlText(text) if path.suffix in YAML_SUFFIXES else None
    code: dict[str, dict[str, Any]] = {}
    problems = list[Problem]()
    for name, where, definition in definitions_of(data):
        line = places.line_of(where) if places else lines_of(text, [where])[where]
        code[name] = {"place": f"{path.name}:{line}"}
        if isinstance(reference := definition.get("custom_function_file"), str):
            file = (path.parent / reference).absolute()
            code[name] = {"file": str(file), "place": reference}
            if not file.is_file():
                message = f"{reference} does not exist beside {path.name}. Create it or correct the name"
                problems.append(Problem.error((*where, "custom_function_file"), message))
        elif places and (first := places.first_line((*where, "custom_function"))):
            code[name] |= {"file": str(path.absolute()), "first_line": first}
    converted, of_format = from_eval_config(data, code)
    problems += of_format
    config = None
    if converted is not None and not has_error(problems):
        config, of_config = validate_config(converted)
        # What the file does not have stands for a name in its list, but for a key that it lacks.
        problems += [
            problem
            if places is None or places.has(problem.path[:-1] if len(problem.path) > 3 else problem.path)
            else replace(problem, path=(METRICS_TO_RUN,))
            for problem in of_config
        ]
    return (None if has_error(problems) else config), located_in_config(path, text, problems)


def located_in_config(path: Path, text: str, problems: Iterable[Problem]) -> list[Problem]:
    """The problems of a config with its name and their lines in its text, which is valid."""
    if path.suffix not in YAML_SUFFIXES:
        return locate(list(problems), text, str(path))
    places = YamlText(text)
    return [
        replace(problem, line=problem.line or places.line_of(problem.path), file=str(path))
        for problem in problems
    ]
