"""Random changes of criteria: the file stays what it was but for them, and ADK reads what is valid."""

import json
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.problems import Severity
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow, OptionRow, RubricRow, text_of
from evaltui.workbench.workbench import Workbench

STARTS = (
    '{"criteria": {"response_match_score": 0.80}, "own": [1.0, 2]}\n',
    '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "matchType": "IN_ORDER"}}}',
    '{"criteria": {"kind": {"threshold": 1, "lowerIsBetter": true}}, "custom_metrics": {"kind": '
    '{"code_config": {"name": "m.k"}}}, "evaltui": {"criteria": {"words": {"threshold": 2, "function": '
    '"m.w"}}, "repeats": {"runs": 3, "pass_if": 0.5}, "turns": [{"set": "greetings", "case": "one", '
    '"turn": 0, "mode": "skip"}], "rules": [{"tool": "f", "arg": "x", "match": "ignore"}]}}',
    '{"criteria": {"rubric_based_tool_use_quality_v1": {"threshold": 0.5, "rubrics": [{"rubricId": "r", '
    '"rubricContent": {"textProperty": "is kind"}}], "judgeModelOptions": {"numSamples": 3}}}}',
    '{"criteria": {"response_match_score": "x"}, "evaltui": []}',
)
TEXTS = ("0", "0.5", "-1", "7", "nan", "1e400", "0,25", " ", "gpt", "majority", "2", "\u202e", "5e-324")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("random")
    (made / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
    (made / "__init__.py").touch()
    data = {"eval_set_id": "greetings", "eval_cases": [{"eval_id": "one", "conversation": []}]}
    (made / "greetings.evalset.json").write_text(json.dumps(data))
    return made


async def edited(folder, start, random, changes):
    """The texts of the file before, after so many changes, and with all of them undone."""
    config = folder / "test_config.json"
    config.write_text(start, encoding="utf-8")
    bench = Workbench(folder)
    await bench.open()
    criteria = Criteria(bench.editing, bench.navigation.file)
    for _ in range(changes):
        row = random.choice([row for section in criteria.sections() for row in section.rows])
        change(criteria, row, random)
        if random.random() < 0.2:
            bench.editing.undo()
        if random.random() < 0.1:
            bench.editing.redo()
        criteria.problems()
        assert bool(criteria.change()) <= bench.editing.is_dirty(config)
    text = bench.editing.document(config).text
    while bench.editing.undo_label:
        bench.editing.undo()
    undone = bench.editing.document(config).text
    await bench.editing.discard()
    await bench.close()
    return SimpleNamespace(text=text, undone=undone)


def change(criteria, row, random):
    """Does one of the things that can be done to a row."""
    text = random.choice(TEXTS)
    match random.randrange(4):
        case 0 if isinstance(row, MetricRow) and not row.in_use:
            if row.gates and not row.why_not:
                assert criteria.addition(row)
            criteria.add(row)
        case 0 if isinstance(row, RubricRow) or (isinstance(row, OptionRow) and row.option.kind == "rubrics"):
            criteria.add_rubric(row.metric, -1, text)
        case 1:
            criteria.remove(row)
        case 2 if text_of(row) is not None and criteria.check(row, text) is None:
            criteria.type(row, text)
        case _:
            criteria.move(row, random.choice((1, -1)), far=random.random() < 0.5)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from(STARTS), seed=st.integers(0, 10_000), changes=st.integers(1, 20))
# A function that is no path; a threshold below 0 of a metric whose range is not known.
@example(start=STARTS[2], seed=985, changes=2)
@example(start=STARTS[2], seed=2390, changes=3)
async def test_changes_are_undone_to_the_letter_and_never_make_what_cannot_be_read(
    folder, start, seed, changes
):
    done = await edited(folder, start, Random(seed), changes)
    assert done.undone == start
    data = json.loads(done.text)
    if validate_config(json.loads(start))[0] is not None:
        errors = [problem for problem in validate_config(data)[1] if problem.severity is Severity.ERROR]
        # A metric that was added says which of its options is still to be given.
        assert all('give the criterion a "' in problem.message for problem in errors), done.text


@pytest.mark.compat
async def test_adk_reads_what_random_changes_write(folder, tmp_path):
    pytest.importorskip("google.adk")
    from google.adk.evaluation.eval_config import (
        get_eval_metrics_from_config,
        get_evaluation_criteria_or_default,
    )

    for seed in range(12):
        done = await edited(folder, STARTS[seed % 4], Random(seed), 12)
        path = tmp_path / f"{seed}.json"
        path.write_text(done.text, encoding="utf-8")
        config = get_evaluation_criteria_or_default(str(path))
        assert {
            metric.metric_name for metric in get_eval_metrics_from_config(config)
        } >= config.criteria.keys()
