"""Run-wide settings: `[tool.evaltui]` of the project's pyproject.toml, and the options of the same names."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from evaltui.core.model.confidence import Confidence
from evaltui.core.model.limits import BUDGET_FORM, Limit, limits_of, parse_budget
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.core.model.problems import Problem
from evaltui.core.model.variants import Variant, variants_of
from evaltui.documents.files import read_regular, typed_path
from evaltui.documents.json_text import why_unreadable
from evaltui.project.folders import agent_folder, seen_from_here
from evaltui.project.hosts import is_loopback
from evaltui.text.values import MAX_VALUE, cut, did_you_mean, nearest_word, show_value

if TYPE_CHECKING:
    # With pydantic, which most projects do without.
    from evaltui.core.model.config import OwnPrice, PassIf

ConfigChoice = Literal["nearest", "beside", "defaults"]
"""How the config of a set is found without an explicit one: by `configs.config_file`; as google-adk does for
one file, only the `test_config.json` beside it; as `adk eval` does for several or for ids, none."""

PROJECT_FILE = "pyproject.toml"
_VARIANTS = "variants"
_PRICES = "prices"
_LIMITS = "limits"
# Seconds per case.
DEFAULT_TIMEOUT = 300.0
DEFAULT_KEPT = 200
DEFAULT_PARALLEL = 4


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run: those of its project, options and defaults. The file of the run stores them."""

    runs: int | None = None
    """Number of runs of each case; None for that in the config of its set."""
    pass_if: PassIf | None = None
    """The pass policy for a case whose runs differ; None for that in the config of its set."""
    confidence: Confidence | None = None
    """The required confidence of each verdict, which decides the number of runs; None for `runs`."""
    adk_verdicts: bool = False
    """Whether ADK's verdicts are used unchanged."""
    config_choice: ConfigChoice = "nearest"
    """The way in which configs of sets are found."""
    python: str | None = None
    """An executable, a virtual environment or a command, relative to the file; None: found by itself."""
    parallel: int = DEFAULT_PARALLEL
    """Number of cases at once."""
    workers: int | None = None
    """Number of agent processes; None: as many as fit the work and the cores."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds per case, or per turn of a conversation."""
    record: RecordMode = DEFAULT_MODE
    """The mode for recordings of model calls."""
    tools: ToolMode | None = None
    """The mode for tool calls; None for the mode that follows from `record`."""
    results_dir: Path | None = None
    """The folder for run logs, absolute; None: `.evaltui/runs` of the agent's folder."""
    keep_runs: int = DEFAULT_KEPT
    """Number of runs that stay when one more is over (see `runs.history.prune`)."""
    budget: str | None = None
    """The budget for the model calls of a run, see `parse_budget`; None: any amount."""
    allow_unmetered: bool = False
    """Whether calls that the budget cannot count are made: `--allow-unmetered`."""
    scheduler: str | None = None
    """The scheduler of the cases: `local:N` or the address of Dask's; None or `off`: this machine."""
    strict_env: bool = False
    """Whether workers with another Python or other packages than this machine are refused."""
    variants: Mapping[str, Variant] = field(default_factory=dict)
    """Other ways to run the agent, by name, their files as seen from `file`."""
    prices: Mapping[str, OwnPrice] = field(default_factory=dict)
    """Prices by model, from the table `prices`, which is no option."""
    limits: tuple[Limit, ...] = ()
    """Limits of model calls, from the table `limits` and `--limit`."""
    file: Path | None = None
    """The pyproject.toml that has the table; None where none has."""

    def to_json(self) -> dict[str, Any]:
        """The settings that a project may have, by their names."""
        values = {name: getattr(self, setting.attribute) for name, setting in SETTINGS.items()}
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


@dataclass(frozen=True)
class Kind:
    """The values that a setting takes."""

    description: str
    """The values in words, such as `a whole number above 0`."""
    form: str
    """The value in the help of the option, such as `N`."""
    accepts: Callable[[object], bool]
    """Whether a TOML value is valid for the setting."""
    choices: tuple[str, ...] = ()
    """All values, where they are few."""


@dataclass(frozen=True)
class Setting:
    """A run-wide setting: a key of `[tool.evaltui]`, and the option of the same name."""

    name: str
    """The key, such as `results-dir`."""
    kind: Kind
    meaning: str
    default: str
    """The default in a few words."""

    @property
    def attribute(self) -> str:
        """The field of `RunSettings`, which is also the attribute of parsed arguments."""
        return self.name.replace("-", "_")


# A run without a scheduler, though the project's settings name one.
OFF = "off"

_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
_INSECURE = "insecure-"
_REMOTE = re.compile(r"((?:insecure-)?tcp|tls)://(\[[^\]\s]+\]|[^:/\s]+):\d{1,5}")


_WITHOUT_TLS = "without TLS, everyone on that network can read the run and run code on its workers"


def is_scheduler(value: object) -> bool:
    """Whether a value names a scheduler that may be used, or `off`."""
    if not isinstance(value, str):
        return False
    is_name = value == OFF or bool(_LOCAL.fullmatch(value) or _REMOTE.fullmatch(value))
    return is_name and not refusal_of(value)


def local_workers(scheduler: str) -> int | None:
    """The number of workers in `local:N`; None for another scheduler."""
    match = _LOCAL.fullmatch(scheduler)
    return int(match[1]) if match else None


def is_elsewhere(scheduler: str) -> bool:
    """Whether its workers are on other machines, as far as known; "" means no scheduler."""
    return scheduler != "" and local_workers(scheduler) is None


def dask_address(scheduler: str) -> str:
    """The address of a scheduler as Dask takes it."""
    return scheduler.removeprefix(_INSECURE)


def refusal_of(scheduler: str) -> str:
    """A sentence on plain TCP to another machine; "" for any other name."""
    match = _REMOTE.fullmatch(scheduler)
    if match is None or match[1] != "tcp" or is_loopback(match[2]):
        return ""
    return f"{scheduler}: {_WITHOUT_TLS}. Use tls://, or {_INSECURE}{scheduler} on a network that you trust"


def warning_of(scheduler: str) -> str:
    """A sentence on plain TCP to another machine that was asked for; "" for any other name."""
    return f"{scheduler}: {_WITHOUT_TLS}" if scheduler.startswith(_INSECURE) else ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_seconds(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 < float(value) < math.inf
    except OverflowError:
        return False


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _is_budget(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_budget(value) is not None
    except ValueError:
        return False


def _one_of(choices: tuple[str, ...]) -> Kind:
    *some, last = choices
    return Kind(f"{', '.join(some)} or {last}", "|".join(choices), lambda value: value in choices, choices)


COUNT = Kind("a whole number above 0", "N", _is_count)
SECONDS = Kind("a number of seconds above 0", "S", _is_seconds)
FOLDER = Kind("a folder", "DIR", _is_path)
BUDGET = Kind(BUDGET_FORM, "5USD|2Mtok", _is_budget)
SCHEDULER = Kind(
    "local:N, (tls|tcp|insecure-tcp)://HOST:PORT or off",
    "local:N|URL",
    is_scheduler,
)
_PYTHON = Kind("a path or a command", "PYTHON", _is_path)

SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "python",
            _PYTHON,
            "Python of the agent: an executable, a virtual environment or a command",
            "the last choice in the workbench, the project's .venv, the active environment, evaltui's own",
        ),
        Setting("parallel", COUNT, "Number of cases at once", str(DEFAULT_PARALLEL)),
        Setting("workers", COUNT, "Number of agent processes", "as needed, at most 4"),
        Setting("timeout", SECONDS, "Seconds per case, or per turn of a chat", f"{DEFAULT_TIMEOUT:g}"),
        Setting(
            "record",
            _one_of(get_args(RecordMode)),
            "Model calls, and tool calls with them: auto replays known calls and records new ones; replay "
            "never calls a model; record calls and stores again; off stores nothing",
            DEFAULT_MODE,
        ),
        Setting(
            "tools",
            _one_of(get_args(ToolMode)),
            "Tool calls: live calls the tools; record also stores the results; stub calls none and takes "
            "results from the recording or the case",
            "as record; the config can set it per tool",
        ),
        Setting(
            "results-dir",
            FOLDER,
            "Folder for run logs, with a folder in it for each agent",
            ".evaltui/runs of the agent's folder",
        ),
        Setting(
            "keep-runs",
            COUNT,
            "Number of runs to keep: older ones are deleted, except named runs, baselines and the last run "
            "of each case",
            str(DEFAULT_KEPT),
        ),
        Setting(
            "budget",
            BUDGET,
            "Stop starting cases after model calls have spent this many dollars or tokens",
            "any amount",
        ),
        Setting(
            "scheduler",
            SCHEDULER,
            "Run the cases on the workers of a Dask scheduler, or on N workers of this machine; parallel and "
            "workers then count for each of them",
            "off",
        ),
    )
}


# Options of a run that no project sets.
_OF_A_RUN = ("runs", "pass_if", "adk_verdicts", "allow_unmetered", "strict_env")


class SettingsError(ValueError):
    """Settings that cannot be used, with every problem found; a line for each."""

    page = "command-line"
    """The page of the guide that helps."""

    def __init__(self, problems: list[Problem], others: RunSettings) -> None:
        self.others = others
        """The valid settings."""
        super().__init__("\n".join(problem.located() for problem in problems))


def run_settings(agent_dir: Path, options: Mapping[str, Any] | None = None) -> RunSettings:
    """The settings of an agent: `options`, else the nearest table at or above its folder, else the defaults.

    `options` have the names of the fields of `RunSettings`; None means not set. A folder among them is
    relative to the current one. Raises SettingsError for a table that is wrong.
    """
    of_project, problems = nearest_table(agent_folder(agent_dir))
    settings = with_options(of_project, options or {})
    # `read_table` has checked the folder of the table.
    if not problems and settings.results_dir is not None and (problem := _no_folder(settings.results_dir)):
        problems = [Problem.error((), f"--results-dir: {problem}")]
        settings = replace(settings, results_dir=None)
    if problems:
        raise SettingsError(problems, settings)
    return settings


def with_options(settings: RunSettings, options: Mapping[str, Any]) -> RunSettings:
    """The settings with the options that are not None."""
    names = (*(setting.attribute for setting in SETTINGS.values()), *_OF_A_RUN)
    values = {name: value for name in names if (value := options.get(name)) is not None}
    if folder := values.get("results_dir"):
        values["results_dir"] = typed_path(folder).absolute()
    if limits := options.get("limits"):
        # Another limit for the same name takes its place.
        values["limits"] = tuple({limit.model: limit for limit in (*settings.limits, *limits)}.values())
    return replace(settings, **values)


def nearest_table(folder: Path) -> tuple[RunSettings, list[Problem]]:
    """The settings of the nearest table at or above a folder, and its problems."""
    folder = folder.resolve()
    for path in (level / PROJECT_FILE for level in (folder, *folder.parents)):
        settings, problems = read_table(path)
        if settings is not None or problems:
            return settings or RunSettings(), problems
    return RunSettings(), []


def read_table(path: Path) -> tuple[RunSettings | None, list[Problem]]:
    """The valid settings in a pyproject.toml, and its problems; None without a table."""
    shown = seen_from_here(path)
    try:
        text = read_regular(path).decode()
        misspelt = _misspelt(text, shown)
        tables = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            return None, [Problem.error((), why_unreadable(path, error), file=shown)]
        return None, []
    # A number of 5,000 digits is a ValueError, too.
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        # Half of a file, a pointer of Git LFS or one with a conflict may hide settings.
        return None, [Problem.error((), f"cannot be read: {reason}", file=shown)]
    tool = tables.get("tool")
    if not isinstance(tool, dict) or "evaltui" not in tool:
        return None, misspelt
    table = tool["evaltui"]
    if not isinstance(table, dict):
        wrong = f"tool.evaltui is {show_value(table)}. Give a table: [tool.evaltui]"
        return None, [Problem.error((), wrong, file=shown, line=_line(text, ()))]
    wrong_tables, tables = list[tuple[tuple[str, ...], str]](), dict[str, Any]()
    for name, read in ((_VARIANTS, variants_of), (_LIMITS, limits_of)):
        try:
            tables[name] = read(table.pop(name, {}))
        except ValueError as error:
            wrong_tables.append(((name,), f"tool.evaltui.{name}: {error}"))
    tables[_PRICES], wrong_prices = _prices(table.pop(_PRICES, {}))
    wrong_keys = dict(_problems(table, path.parent))
    problems = misspelt + [
        Problem.error((), problem, file=shown, line=_line(text, keys) or _line(text, keys[:2]))
        for keys, problem in (
            *(((key,), problem) for key, problem in wrong_keys.items()),
            *wrong_tables,
            *wrong_prices,
        )
    ]
    right = {key: value for key, value in table.items() if key not in wrong_keys}
    values = {SETTINGS[key].attribute: value for key, value in right.items()}
    if folder := values.get("results_dir"):
        values["results_dir"] = path.parent / typed_path(folder)
    if timeout := values.get("timeout"):
        values["timeout"] = float(timeout)
    return RunSettings(**values, **tables, file=path), problems


# The tables of tools, such as `[tool.ruff.lint]`.
_TOOL = re.compile(r"""^[ \t]*\[\[?[ \t]*tool[ \t]*\.[ \t]*["']?([\w-]+)""", re.MULTILINE)


def _misspelt(text: str, file: str) -> list[Problem]:
    """The problem of a table whose name is nearly that of the settings."""
    for match in _TOOL.finditer(text):
        if match[1] != "evaltui" and nearest_word(match[1].lower(), ["evaltui"], likeness=0.75):
            line = text.count("\n", 0, match.start(1)) + 1
            message = f"tool.{match[1]} is unknown. Did you mean tool.evaltui?"
            return [Problem.error((), message, file=file, line=line)]
    return []


def _prices(table: object) -> tuple[dict[str, OwnPrice], list[tuple[tuple[str, ...], str]]]:
    """The valid prices, and the problems of the table, each with its keys."""
    if not isinstance(table, dict):
        wrong = f"tool.evaltui.{_PRICES} is {show_value(table)}. Give a table: [tool.evaltui.{_PRICES}]"
        return {}, [((_PRICES,), wrong)]
    if not table:
        return {}, []
    # Most projects do without, and without pydantic the start is quicker.
    from pydantic import ValidationError

    from evaltui.core.model.config import OwnPrice

    prices, problems = {}, list[tuple[tuple[str, ...], str]]()
    for model, value in table.items():
        try:
            prices[model] = OwnPrice.model_validate(value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                keys = (_PRICES, model, *map(str, detail["loc"]))
                problems.append((keys, f"tool.evaltui.{'.'.join(keys)}: {detail['msg']}"))
    return prices, problems


def _problems(table: Mapping[str, object], folder: Path) -> Iterator[tuple[str, str]]:
    """The problems of a table, each with its key; `folder` is the base of relative paths."""
    for key, value in table.items():
        place = f"tool.evaltui.{key}"
        if (setting := SETTINGS.get(key)) is None:
            names = [*SETTINGS, _VARIANTS, _PRICES, _LIMITS]
            hint = did_you_mean(key, names) or f". Known: {', '.join(names)}"
            yield key, f"{place} is unknown{hint}"
        elif not setting.kind.accepts(value):
            yield key, f"{place} is {show_value(value)}. Give {setting.kind.description}"
        elif setting.kind is FOLDER and (problem := _no_folder(folder / typed_path(str(value)))):
            yield key, f"{place}: {problem}"


def _line(text: str, keys: tuple[str, ...]) -> int | None:
    """The line, from 1, at whose end the table has a key; None where the value goes on in further lines."""
    name = keys[-1] if keys else "evaltui"
    lines = text.split("\n")
    for number in (number for number, line in enumerate(lines, 1) if name in line):
        try:
            value: Any = tomllib.loads("\n".join(lines[:number]))
        except ValueError:
            continue
        for key in ("tool", "evaltui", *keys):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return number
    return None


def _no_folder(folder: Path) -> str:
    """Why logs cannot be kept in a folder, as far as that shows before a run; "" where they can."""
    if "gs:" in folder.parts:
        return "run logs need a folder; from Python, evaluate(results_dir=...) keeps results in a bucket"
    for parent in (folder, *folder.parents):
        try:
            if parent.exists() or parent.is_symlink():
                return "" if parent.is_dir() else f"{parent} is not a folder"
        except OSError as error:
            return f"{cut(str(parent), MAX_VALUE)}: {error.strerror or error}"
    return ""
