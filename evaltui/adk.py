"""`AgentEvaluator` with the signatures of google-adk: a suite moves here by its import line.

Each run of a case is judged by itself, and what failed is named; google-adk holds one mean per metric of all
runs against the threshold. Needs no google-adk besides what the agent itself needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.model.outcome import CasesFailedError, RunResult
from evaltui.files.configs import find_config
from evaltui.reports.details import MAX_WIDTH, case_details
from evaltui.runner.evaluation import evaluate
from evaltui.text.lines import draw

NUM_RUNS = 2
_OF_ADK = ".test.json"


class AgentEvaluator:
    """Evaluates an agent against eval sets, and raises AssertionError unless every case passes."""

    @staticmethod
    def find_config_for_test_file(test_file: str | Path) -> EvalConfig:
        """The config beside a file, ADK's defaults without one. Raises EvalSetError."""
        return find_config(Path(test_file)).config

    @staticmethod
    async def evaluate(
        agent_module: str,
        eval_dataset_file_path_or_dir: str,
        num_runs: int = NUM_RUNS,
        agent_name: str | None = None,
        initial_session_file: str | None = None,
        print_detailed_results: bool = True,
        **unsupported: Any,
    ) -> RunResult:
        """Run the cases of a file, or of every `*.test.json` below a folder, each `num_runs` times.

        `agent_module` is a dotted name, or a folder. Raises CasesFailedError, an AssertionError, unless every
        run of every case passes; ValueError where there is nothing to run, and for arguments of google-adk
        that need the agent in this process; EvalSetError.
        """
        _refuse(num_runs, unsupported)
        result = await evaluate(
            agent_module,
            _files(Path(eval_dataset_file_path_or_dir)),
            runs=num_runs,
            agent=agent_name,
            initial_session=initial_session_file,
        )
        return _judged(result, print_detailed_results)

    @staticmethod
    async def evaluate_eval_set(
        agent_module: str,
        eval_set: Any,
        criteria: Mapping[str, float] | None = None,
        eval_config: Any = None,
        num_runs: int = NUM_RUNS,
        agent_name: str | None = None,
        print_detailed_results: bool = True,
        **unsupported: Any,
    ) -> RunResult:
        """As `evaluate`, for models: an eval set and a config of google-adk or of evaltui.

        `criteria` are thresholds by metric, and go before `eval_config`. Raises ValueError without either.
        """
        _refuse(num_runs, unsupported)
        if not criteria and eval_config is None:
            raise ValueError("eval_config is required")
        config = EvalConfig.model_validate({"criteria": dict(criteria)} if criteria else _data(eval_config))
        result = await evaluate(
            agent_module, EvalSet.model_validate(_data(eval_set)), config, runs=num_runs, agent=agent_name
        )
        return _judged(result, print_detailed_results)


def _files(place: Path) -> list[Path]:
    """Raises ValueError where there is none."""
    files = sorted(place.rglob(f"*{_OF_ADK}")) if place.is_dir() else [place]
    if not files:
        raise ValueError(f"{place} has no *{_OF_ADK}; give the path of another eval set")
    return files


def _data(model: Any) -> Any:
    """A model of google-adk, or of ours, as JSON data."""
    return model.model_dump(mode="json", exclude_none=True)


def _refuse(num_runs: int, unsupported: Mapping[str, Any]) -> None:
    if num_runs < 1:
        raise ValueError(f"num_runs must be at least 1, got {num_runs}")
    if given := [name for name, value in unsupported.items() if value is not None]:
        raise ValueError(f"{', '.join(given)}: not supported here; the agent runs in a process of its own")


def _judged(result: RunResult, prints: bool) -> RunResult:
    """The result of a run in which every case passed. Raises CasesFailedError for another."""
    failed = [case for case in result.cases if not case.passed]
    if prints:
        for case in failed:
            print(f"\n{case.eval_set_id}: {case.eval_id} {case.status}")
            print("\n".join(draw(line, color=False) for line in case_details(case, MAX_WIDTH)))
    if failed or not result.cases:
        raise CasesFailedError(result)
    return result
