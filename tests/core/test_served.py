"""Names of models that answered: which are of another model, and what they excuse."""

import pytest

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
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
