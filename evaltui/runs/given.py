"""Arguments of Python callers, models of google-adk included, as a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from evaltui.core.compare.repeats import is_pass_rate
from evaltui.core.metrics.config_validation import rubric_problems, validate_config
from evaltui.core.model.confidence import DEFAULT_MAX_RUNS, Confidence
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, EvalSet
from evaltui.core.model.json_values import indexed_objects, list_at, spelling_in
from evaltui.core.model.problems import EvalSetError, SelectionError, errors_in, has_error
from evaltui.core.model.tags import TagChoice
from evaltui.core.model.validation import validate_eval_set
from evaltui.core.model.variants import VariantTextError, variant_of_text
from evaltui.project.agent_address import AgentAddress, as_variant
from evaltui.project.configs import ConfigInUse, find_config, read_config
from evaltui.project.eval_sets import InitialSession
from evaltui.project.folders import case_path
from evaltui.project.interpreters import OWN, InterpreterError, find_interpreter
from evaltui.project.modules import find_module
from evaltui.project.remote_address import checked_url, is_url
from evaltui.project.run_settings import COUNT, SETTINGS, ConfigChoice, Kind
from evaltui.project.variants import VariantFileError, with_places
from evaltui.project.workspace import no_tag, open_workspace, select
from evaltui.runner.plan import RunPlan, SetPlan
from evaltui.runner.starting import (
    HostSettings,
    StartedHost,
    VariantError,
    require_variant,
    start_host,
)
from evaltui.runs.sets import read_set

EvalSetArgument = str | Path | EvalSet | EvalCase | Mapping[str, Any] | BaseModel
"""A file, a folder or the id of a set; a set or a case, of evaltui or google-adk; JSON data of a set."""
EvalSetsArgument = EvalSetArgument | Sequence[EvalSetArgument] | None
ConfigArgument = EvalConfig | str | Path | Mapping[str, Any] | BaseModel | None
# The set of cases that are in none.
_LOOSE_CASES_SET = "cases"
_NON_AGENT_TYPES = (bool, int, float, bytes, list, tuple, set, Mapping)


def address_of(
    agent: Any, name: str | None = None, python: str | None = None, home: str | Path | None = None
) -> AgentAddress:
    """The address of an agent: a folder, a file, a dotted module name, a URL, or an object of this process.

    `home` is the folder of eval sets for an object or a URL, None for the current folder. Raises ValueError
    for an agent that does not exist and for arguments that do not fit it, TypeError for other types.
    """
    if agent is None or isinstance(agent, _NON_AGENT_TYPES):
        raise TypeError(
            "an agent is a folder, a file, a module's name, a URL or an agent object, "
            f"not of type {type(agent).__name__}"
        )
    is_remote = isinstance(agent, str) and is_url(agent)
    if isinstance(agent, str | Path) and not is_remote:
        if home is not None:
            raise ValueError(f"home: the eval sets of {agent} are in its own folder")
        module = "" if isinstance(agent, Path) or Path(agent).exists() else str(agent)
        folder = find_module(module, None) if module else Path(agent)
        interpreter = find_interpreter(folder, python) if python else OWN
        if interpreter.problem:
            raise InterpreterError(interpreter.problem)
        return AgentAddress(folder, name, interpreter, module)
    if python is not None:
        where = "at its URL" if is_remote else "in this process"
        raise ValueError(f"python: the agent runs {where}")
    folder = Path(home or ".")
    if not folder.is_dir():
        raise ValueError(f"home: {folder} is not a folder")
    if is_remote:
        return AgentAddress(folder, name, url=checked_url(agent))
    return AgentAddress(folder, name, in_process=True)


def read_config_argument(config: ConfigArgument) -> ConfigInUse | None:
    """The config for a model, JSON data or a file, with its warnings; None for None.

    Raises EvalSetError for errors in it, TypeError for other types.
    """
    if config is None:
        return None
    path = Path(config) if isinstance(config, str | Path) else None
    if path is not None:
        model, problems = read_config(path)
    else:
        # A criterion may be of any class; only as data it is what a config file says.
        model, problems = validate_config(_data(config, "a config"))
    if model is None:
        raise EvalSetError(errors_in(problems))
    return ConfigInUse(path, model, tuple(problems), is_given=path is None)


def _is_pass_rule(value: object) -> bool:
    return value in ("all", "majority") or is_pass_rate(value)


_PATH_KIND = Kind("a path", "", lambda value: isinstance(value, str | Path))
_TEXT_KIND = Kind("a text", "", lambda value: isinstance(value, str))
_FLAG_KIND = Kind("True or False", "", lambda value: isinstance(value, bool))
# Arguments of `evaluate` that a command line would have checked.
_KINDS = {setting.attribute: setting.kind for setting in SETTINGS.values()} | {
    "runs": COUNT,
    "pass_if": Kind("all, majority or a pass rate, e.g. 0.6", "", _is_pass_rule),
    "adk_verdicts": _FLAG_KIND,
    "allow_unmetered": _FLAG_KIND,
    "agent_name": _TEXT_KIND,
    "home": _PATH_KIND,
    "results_dir": _PATH_KIND,
    "limits": Kind("a table of limits by model", "", lambda value: isinstance(value, Mapping)),
    "variant": _TEXT_KIND,
}
_REQUIRED_SETTINGS = {"adk_verdicts", "allow_unmetered", "parallel", "record", "timeout", "variant"}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Checks run settings. Raises ValueError that names the invalid one."""
    wrong = [
        f"{name}: {value!r} is wrong: wanted is {kind.description}"
        for name, value in settings.items()
        if (kind := _KINDS.get(name))
        and not (kind.accepts(value) or (value is None and name not in _REQUIRED_SETTINGS))
    ]
    if wrong:
        raise ValueError("; ".join(wrong))


def make_confidence(level: float | None, max_runs: int | None) -> Confidence | None:
    """The confidence for a level, None without one. Raises ValueError for invalid numbers."""
    if level is None:
        if max_runs is not None:
            raise ValueError("max_runs needs a confidence")
        return None
    return Confidence(level, DEFAULT_MAX_RUNS if max_runs is None else max_runs)


def set_plans(
    agent: AgentAddress,
    eval_sets: EvalSetsArgument,
    config: ConfigInUse | None,
    initial_session: InitialSession,
    choice: ConfigChoice,
) -> tuple[SetPlan, ...]:
    """The plans of the given sets in order, None for every set of the agent.

    Loose cases make up one set; a file given twice counts once. Without `config`, a file has the config that
    a run finds, others ADK's defaults. Raises EvalSetError for errors in a set or config, SelectionError
    without sets, ValueError for two sets with one id, TypeError for other types.
    """
    several = eval_sets if isinstance(eval_sets, Sequence) and not isinstance(eval_sets, str) else [eval_sets]
    plans: dict[str, SetPlan] = {}

    def add(plan: SetPlan) -> None:
        before = plans.get(plan.case_path)
        if before is not None and None in (before.path, plan.path):
            name = plan.case_path
            raise ValueError(f"two eval sets have the id {name!r}; results could not tell their cases apart")
        plans[plan.case_path] = plan

    loose: list[Any] = []
    for source in several:
        if source is None or isinstance(source, str | Path):
            for path, eval_ids in _files(agent, source):
                before = plans.get(case_path(agent.folder, path))
                if before is not None and eval_ids is not None:
                    eval_ids = None if before.whole else [*before.eval_ids, *eval_ids]
                add(_plan_of_file(agent.folder, path, eval_ids, config, initial_session, choice))
        elif _is_case(source):
            loose.append(_case_data(source, "an eval case"))
        else:
            add(_plan_of_data(_case_data(source, "an eval set"), config))
    if loose:
        add(_plan_of_data({"eval_set_id": _LOOSE_CASES_SET, "eval_cases": loose}, config))
    return tuple(plans.values())


def select_by_tags(plan: RunPlan, tags: Sequence[str], not_tags: Sequence[str]) -> RunPlan:
    """The plan without cases that lack one of `tags` or have one of `not_tags`.

    Raises ValueError for an invalid list of tags, SelectionError for an unused tag, and where no case is
    left.
    """
    for name, value in (("tags", tags), ("not_tags", not_tags)):
        if isinstance(value, str) or not all(isinstance(tag, str) for tag in value):
            raise ValueError(f"{name}: {value!r} is not a list of tags")
    choice = TagChoice(tuple(tags), tuple(not_tags))
    if not choice:
        return plan
    sets, all_tags = [], set[str]()
    for eval_set in plan.sets:
        of_cases = eval_set.tags
        all_tags |= {tag for of_case in of_cases.values() for tag in of_case}
        if chosen := [eval_id for eval_id in eval_set.eval_ids if choice.keeps(of_cases.get(eval_id, ()))]:
            sets.append(eval_set.only(chosen))
    if (unknown := choice.unknown(all_tags)) is not None:
        raise SelectionError(f"{'tags' if unknown in tags else 'not_tags'}: {no_tag(unknown, all_tags)}")
    if not sets:
        raise SelectionError("tags: no case is left to run")
    return replace(plan, sets=tuple(sets))


def _files(agent: AgentAddress, selector: str | Path | None) -> Iterator[tuple[Path, Sequence[str] | None]]:
    """The files of sets, each with the given ids of its cases, None for all."""
    if selector is not None and Path(selector).is_file():
        yield Path(selector), None
        return
    if isinstance(selector, Path) and not selector.exists():
        raise SelectionError(f"{selector}: no such file or folder")
    # Also the id of a set, as on the command line.
    for eval_set, eval_ids in select(
        open_workspace(agent.folder, in_project=not agent.url), [] if selector is None else [str(selector)]
    ):
        yield eval_set.path, eval_ids


def _plan_of_file(
    agent_dir: Path,
    path: Path,
    eval_ids: Sequence[str] | None,
    config: ConfigInUse | None,
    initial_session: InitialSession,
    choice: ConfigChoice,
) -> SetPlan:
    in_use = config or find_config(path, choice=choice)
    plan = read_set(agent_dir, path, in_use, initial_session)
    return plan if eval_ids is None else replace(plan.only(eval_ids), whole=False)


def _plan_of_data(data: Any, config: ConfigInUse | None) -> SetPlan:
    eval_set, problems = validate_eval_set(data)
    in_use = config or ConfigInUse(None, EvalConfig.default())
    if eval_set is not None:
        cases = list_at(data, (key := spelling_in("eval_cases", data),))
        problems = problems + [
            replace(problem, path=(key, number, *problem.path))
            for number, case in indexed_objects(cases)
            for problem in rubric_problems(case, in_use.config)
        ]
    named = f"eval set {data.get('eval_set_id', data.get('evalSetId'))!r}"
    problems = [replace(problem, file=named) for problem in problems]
    if eval_set is None or has_error(problems):
        raise EvalSetError(errors_in(problems))
    set_id = eval_set.eval_set_id
    return SetPlan(set_id, set_id, tuple(eval_set.eval_cases), in_use, problems=tuple(problems))


def _is_case(value: Any) -> bool:
    """Whether a value is an eval case of evaltui, of google-adk, or as JSON data."""
    if isinstance(value, Mapping):
        return bool(value.keys() & {"eval_id", "evalId"})
    return hasattr(value, "eval_id")


def _case_data(value: Any, what: str) -> Any:
    """`_data` of an eval set or a case, whose values may be NaN and infinity: as JSON, they would be null."""
    if isinstance(value, BaseModel):
        value = to_jsonable_python(
            value.model_dump(exclude_none=True, serialize_as_any=True),
            bytes_mode="base64",
            inf_nan_mode="constants",
        )
    return _data(value, what)


def _data(value: Any, what: str) -> Any:
    """JSON data of a model of evaltui or google-adk; JSON data is returned unchanged."""
    if isinstance(value, Mapping):
        return dict(value)
    if not hasattr(value, "model_dump"):
        kind = type(value).__name__
        raise TypeError(f"{what} is a path, a dict, or a model of evaltui or google-adk, not of type {kind}")
    return value.model_dump(mode="json", exclude_none=True, serialize_as_any=True)


@contextmanager
def variant_plan(plan: RunPlan, text: str, python: str | None) -> Iterator[RunPlan]:
    """The plan with a variant of the agent, whose files exist during the block; the plan itself without a
    text.

    Paths are relative to the current folder. Raises ValueError for an invalid variant, missing files, and an
    agent that cannot be changed.
    """
    if not text:
        yield plan
        return
    if plan.agent.in_process or plan.agent.url:
        what = "an agent behind a network" if plan.agent.url else "an agent object"
        raise ValueError(f"variant: {what} cannot be changed; give a folder, a file or a module")
    try:
        variant = with_places(variant_of_text(text, {}), plan.agent.folder, Path())
        with as_variant(plan.agent, variant, python) as agent:
            yield replace(plan, agent=agent)
    except (VariantTextError, VariantFileError, InterpreterError) as error:
        raise ValueError(f"variant: {error}") from error


async def start_variant_host(plan: RunPlan) -> StartedHost:
    """Starts a host of the plan's agent and checks that the variant fits.

    Raises ValueError where it does not; other errors of the agent are reported by the run.
    """
    host = start_host(HostSettings(plan.agent, plan.settings.timeout))
    try:
        await require_variant(host)
    except BaseException as error:
        await host.host.kill()
        if isinstance(error, VariantError):
            raise ValueError(f"variant: {error}") from error
        raise
    return host
