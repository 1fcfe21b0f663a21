"""`AgentEvaluator` with the signatures of google-adk: a suite moves here by its import line.

Each run of a case is judged by itself, and what failed is named; google-adk holds one mean per metric of all
runs against the threshold. Needs no google-adk besides what the agent itself needs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Generator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

from evaltui.core.compare.run_result import CasesFailedError, RunResult
from evaltui.core.model.config import EvalConfig
from evaltui.documents.files import write_atomically
from evaltui.project.configs import find_config_for_test_file
from evaltui.project.eval_sets import load_eval_set, migrated_text
from evaltui.project.folders import is_lost_folder, json_files_below
from evaltui.reports.details import MAX_WIDTH, case_details
from evaltui.runs.adk_document import ResultsManager, save_results
from evaltui.runs.evaluation import CaseResponses, generate_responses, plan_for, run_planned
from evaltui.text.lines import draw
from evaltui.text.values import without_commands

NUM_RUNS = 2
_OF_ADK = ".test.json"


_Given = ParamSpec("_Given")


class _Finished(Coroutine[Any, Any, RunResult]):
    """A result that may be awaited, and need not be."""

    def __init__(self, result: RunResult) -> None:
        self._result = result

    def send(self, value: Any) -> NoReturn:
        raise StopIteration(self._result)

    def throw(self, *raised: Any) -> NoReturn:
        raise raised[0]

    def close(self) -> None:
        pass

    def __await__(self) -> Generator[Any, Any, RunResult]:
        yield from ()
        return self._result


def _done_without_a_loop(
    evaluate: Callable[_Given, Coroutine[Any, Any, RunResult]],
) -> Callable[_Given, Coroutine[Any, Any, RunResult]]:
    """Where no event loop runs, the cases are run before it returns.

    Suites of google-adk from before it was a coroutine do not await it, and would pass with nothing run.
    """

    @wraps(evaluate)
    def wrapper(*args: _Given.args, **kwargs: _Given.kwargs) -> Coroutine[Any, Any, RunResult]:
        waiting = evaluate(*args, **kwargs)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _Finished(asyncio.run(waiting))
        return waiting

    return wrapper


class AgentEvaluator:
    """Evaluates an agent against eval sets, and raises AssertionError unless every case passes.

    `agent_module` is a dotted name as in google-adk, or what else `evaltui.evaluate` takes for an agent. With
    an `eval_set_results_manager`, results are kept by it, under `app_name`.
    """

    @staticmethod
    def find_config_for_test_file(test_file: str | Path) -> EvalConfig:
        """The config beside a file, ADK's defaults without one. Raises EvalSetError."""
        return find_config_for_test_file(test_file)

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str, new_eval_data_file: str, initial_session_file: str | None = None
    ) -> None:
        """Write a file of an older format as an eval set. Raises EvalSetError, OSError."""
        new = Path(new_eval_data_file)
        write_atomically(new, migrated_text(load_eval_set(old_eval_data_file, initial_session_file), new))

    @staticmethod
    @_done_without_a_loop
    async def evaluate(
        agent_module: Any,
        eval_dataset_file_path_or_dir: str,
        num_runs: int = NUM_RUNS,
        agent_name: str | None = None,
        initial_session_file: str | None = None,
        print_detailed_results: bool = True,
        artifact_service: None = None,
        output_file: None = None,
        app_name: str | None = None,
        eval_set_results_manager: ResultsManager | None = None,
    ) -> RunResult:
        """Run the cases of a file, or of every `*.test.json` below a folder, each `num_runs` times.

        Raises CasesFailedError, an AssertionError, unless every run of every case passes; ValueError where
        there is nothing to run, and for arguments of google-adk that it does not have; EvalSetError.
        """
        _refuse(num_runs, artifact_service, output_file)
        files = _files(Path(eval_dataset_file_path_or_dir))
        options = {"runs": num_runs, "agent_name": agent_name, "initial_session": initial_session_file}
        result = await _evaluated(agent_module, files, None, options, app_name, eval_set_results_manager)
        return _judged(result, print_detailed_results)

    @staticmethod
    @_done_without_a_loop
    async def evaluate_eval_set(
        agent_module: Any,
        eval_set: Any,
        criteria: Mapping[str, float] | None = None,
        eval_config: Any = None,
        num_runs: int = NUM_RUNS,
        agent_name: str | None = None,
        print_detailed_results: bool = True,
        artifact_service: None = None,
        output_file: None = None,
        app_name: str | None = None,
        eval_set_results_manager: ResultsManager | None = None,
    ) -> RunResult:
        """Evaluates models: an eval set and a config of google-adk or of evaltui.

        `criteria` are thresholds by metric, and go before `eval_config`. Raises ValueError without either.
        """
        _refuse(num_runs, artifact_service, output_file)
        if not criteria and eval_config is None:
            raise ValueError("eval_config is required")
        config = {"criteria": dict(criteria)} if criteria else eval_config
        options = {"runs": num_runs, "agent_name": agent_name}
        result = await _evaluated(agent_module, eval_set, config, options, app_name, eval_set_results_manager)
        return _judged(result, print_detailed_results)


async def _evaluated(
    agent: Any,
    eval_sets: Any,
    config: Any,
    options: Mapping[str, Any],
    app_name: str | None,
    manager: ResultsManager | None,
) -> RunResult:
    if manager is not None and not app_name:
        raise ValueError("app_name is required with eval_set_results_manager")
    plan = plan_for(agent, eval_sets, config, **options)
    result = await run_planned(agent, plan)
    if manager is not None:
        await asyncio.to_thread(save_results, manager, plan, result, app_name)
    return result


def _files(place: Path) -> list[Path]:
    """With those of hidden folders, as in google-adk, and what cannot be read. Raises ValueError where there
    is none."""
    if not place.is_dir():
        return [place]
    below = [*place.rglob(f"*{_OF_ADK}"), *json_files_below([place], keep_sets=True)]
    of_adk = (
        file
        for file in below
        if file.name.lower().endswith(_OF_ADK) or is_lost_folder(file) or os.path.isdir(file)  # noqa: PTH112
    )
    files = sorted({os.path.realpath(file): file for file in of_adk}.values())
    if not files:
        raise ValueError(f"{place} has no *{_OF_ADK}; give the path of another eval set")
    return files


def _refuse(num_runs: int, artifact_service: object, output_file: object) -> None:
    if num_runs < 1:
        raise ValueError(f"num_runs must be at least 1, got {num_runs}")
    if artifact_service is not None:
        raise ValueError("artifact_service: not supported; each case has an artifact service of its own")
    if output_file is not None:
        raise ValueError("output_file: not supported; the result has to_pandas(), `evaltui run` --report csv")


def _judged(result: RunResult, prints: bool) -> RunResult:
    """The result of a run in which every case passed. Raises CasesFailedError for another."""
    failed = [case for case in result.cases if not case.passed]
    if prints:
        for case in failed:
            print(without_commands(f"\n{case.eval_set_id}: {case.eval_id} {case.status}"))
            print("\n".join(draw(line, color=False) for line in case_details(case, MAX_WIDTH)))
    if failed or not result.cases:
        raise CasesFailedError(result)
    return result


EvalCaseResponses = CaseResponses


class EvaluationGenerator:
    """Runs an agent on eval sets without scoring."""

    @staticmethod
    async def generate_responses(
        eval_set: Any,
        agent_module_path: Any,
        repeat_num: int = 3,
        agent_name: str | None = None,
        user_simulator_config: Any = None,
    ) -> list[EvalCaseResponses]:
        """Each case of a set, `repeat_num` times. The agent is what `evaltui.evaluate` takes.

        Raises RuntimeError where the agent raised: `evaltui.generate_responses` has such cases, too.
        """
        config = (
            {} if user_simulator_config is None else {"user_simulator_config": _data(user_simulator_config)}
        )
        responses = await generate_responses(
            agent_module_path,
            eval_set,
            {"criteria": {}, **config},
            repeat_num=repeat_num,
            agent_name=agent_name,
        )
        if failed := [repr(response) for response in responses if any(response.errors)]:
            raise RuntimeError("\n".join(failed))
        return responses


def _data(model: Any) -> Any:
    return model.model_dump(mode="json", exclude_none=True) if hasattr(model, "model_dump") else model
