"""Names of models that answered: which are of another model, and what they excuse."""

from dataclasses import replace

import pytest

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary
from evaltui.core.model.outcome import Status
from evaltui.core.model.served import ServedModel, is_other_model


@pytest.mark.parametrize(
    ("model", "version", "is_other"),
    [
        ("gemini-2.5-flash", "gemini-2.5-flash", False),
        ("gemini-2.5-flash", "models/gemini-2.5-flash-001", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-preview-05-20", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite", True),
        ("gemini-2.5-flash", "gemini-3.5-flash-lite", True),
        ("gemini-2.5-flash-001", "gemini-2.5-flash-002", True),
        ("gemini-2.5-flash-preview-04-17", "gemini-2.5-flash-preview-05-20", True),
        ("gemini-1.5-flash", "gemini-1.5-flash-8b", True),
        ("gemini-flash-latest", "gemini-2.5-flash", False),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", True),
        ("gpt-4", "gpt-4.1", True),
        ("gpt-4-0613", "GPT-4", False),
        ("claude-opus-4", "claude-opus-4-20250514", False),
        ("claude-opus-4", "claude-opus-4-5-20251101", True),
        ("claude-sonnet-4", "claude-sonnet-4@20250514", False),
        ("claude-3-5-sonnet", "claude-3-5-sonnet-20240620-v1:0", False),
        ("scripted", "scripted-1", False),
        ("", "gemini-2.5-flash", False),
        ("gemini-2.5-flash", "", False),
    ],
)
def test_another_model_adds_more_to_a_name_than_a_version(model, version, is_other):
    assert is_other_model(model, version) is is_other_model(version, model) is is_other


def run(version, status, scores, **served):
    models = tuple(ServedModel(version=name, model="m", **served) for name in version.split("+"))
    case = CaseSummary("s", "c", status, passed=int(status is Status.PASSED), scores=scores, served=models)
    return RunSummary(version, {case.id: case})


@pytest.mark.parametrize(
    ("versions", "served", "scores", "is_regression"),
    [
        (("m-001", "m-001"), {"payer": "agent"}, {"judged": 0.0}, True),
        (("m-001", "n"), {"payer": "agent"}, {"judged": 0.0}, False),
        (("m-001", ""), {"payer": "agent"}, {"judged": 0.0}, True),
        (("m-001+n", "m-001"), {"payer": "agent"}, {"judged": 0.0}, True),
        (("m-001+n", "m-001+o"), {"payer": "agent"}, {"judged": 0.0}, False),
        (("m-001", "n"), {"payer": "simulated user"}, {"calls": 0.0}, False),
        (("m-001", "n"), {"payer": "judge", "metric": "judged"}, {"judged": 0.0}, False),
        (("m-001", "n"), {"payer": "judge", "metric": "judged"}, {"judged": 0.0, "calls": 0.0}, True),
    ],
)
def test_another_model_excuses_what_it_may_have_changed(versions, served, scores, is_regression):
    passing = {"judged": 1.0, "calls": 1.0}
    base = run(versions[0], Status.PASSED, passing, **served)
    comparison = compare(base, run(versions[1], Status.FAILED, passing | scores, **served))
    assert [change.regression for change in comparison.cases] == [is_regression]
    assert len(comparison.of_other_models) == (not is_regression)


@pytest.mark.parametrize(
    ("served", "scores", "is_regression"),
    [
        ({"payer": "judge", "metric": "judged"}, {}, True),
        ({"payer": "judge", "metric": "judged"}, {"judged": 0.9}, True),
        ({"payer": "agent"}, {}, True),
        ({"payer": "agent"}, {"calls": 0.6}, False),
    ],
)
def test_another_model_does_not_excuse_a_raised_threshold(served, scores, is_regression):
    runs = [
        replace(
            run(version, status, {"judged": 1.0, "calls": 0.7} | moved, **served),
            circumstances=Circumstances(configs={"s": {"criteria": {"calls": threshold}}}),
        )
        for version, status, moved, threshold in (
            ("m-001", Status.PASSED, {}, 0.6),
            ("n", Status.FAILED, scores, 0.8),
        )
    ]
    assert [change.regression for change in compare(*runs).cases] == [is_regression]


@pytest.mark.parametrize(
    ("others", "scores", "is_regression"),
    [
        ({"payer": "agent"}, {"calls": 0.0}, True),
        ({"payer": "agent"}, {"judged": 0.0}, False),
        ({"payer": "judge", "metric": "calls"}, {"calls": 0.0}, True),
        ({"payer": "judge", "metric": "calls"}, {"judged": 0.0}, False),
    ],
)
def test_another_judge_excuses_no_score_beside_its_own(others, scores, is_regression):
    """Fewer models of the others are no excuse."""
    passing = {"judged": 1.0, "calls": 1.0}
    judges = [run(version, Status.PASSED, {}, payer="judge", metric="judged") for version in ("m-001", "n")]
    sides = [
        run("m-001+n", Status.PASSED, passing, **others),
        run("n", Status.FAILED, passing | scores, **others),
    ]
    runs = [
        replace(
            side,
            cases={
                case: replace(summary, served=summary.served + judge.cases[case].served)
                for case, summary in side.cases.items()
            },
        )
        for side, judge in zip(sides, judges, strict=True)
    ]
    assert [change.regression for change in compare(*runs).cases] == [is_regression]
