"""EvaluationDatasets in the workbench: shown, run, edited, merged and saved in their own words."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import ANY

import pytest

from evaltui.documents.recovery import recoverable
from evaltui.tui.dialogs.unsaved import Recovery
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.cases import set_editing
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench
from tests.project.layouts import AGENT, write

TEXT = """\
{
  "eval_cases": [
    {
      "eval_case_id": "light",
      "prompt": {"role": "user", "parts": [{"text": "light on"}]},
      "reference": {"response": {"parts": [{"text": "Done."}]}, "why": "short"},
      "note": [1, 2]
    },
    { "eval_case_id": "bye", "prompt": { "parts": [ { "text": "bye" } ] },
      "reference": { "response": { "parts": [ { "text": "Bye" } ] } } }
  ]
}
"""
CONFIG = """\
# of the project
metrics_to_run: [mine, general_quality]  # both

custom_metrics:
  - name: mine
    custom_function: |
      def evaluate(instance):
          return 3
"""


@pytest.fixture
async def opened(tmp_path, open_workbench):
    write(tmp_path / "agent.py", AGENT)
    dataset = write(tmp_path / "eval" / "basic.json", TEXT)
    write(tmp_path / "eval" / "eval_config.yaml", CONFIG)
    workbench = await open_workbench(tmp_path)
    return workbench, dataset


def answer(workbench: Workbench, path: Path, case: int, text: str) -> bool:
    return workbench.editing.do("answer", path, lambda one: one.case(case).turn(0).answer.set_text(text))


async def test_a_dataset_is_listed_with_its_metrics_and_can_be_migrated(opened):
    workbench, dataset = opened
    (shown,) = workbench.sets.listed
    assert (shown.path, shown.format, shown.eval_set_id) == (dataset, "dataset", "basic")
    assert [case.eval_id for case in shown.cases] == ["light", "bye"]
    opened_set = workbench.sets.open(dataset)
    names = ["mine", "general_quality"]
    assert [metric.metric_name for metric in opened_set.config.config.metrics()] == names
    workbench.navigation.select(Selection(shown.case_path, "light"))
    assert ACTIONS_BY_ID["convert"].refusal(workbench) is None
    assert set_editing.convert_file(dataset)[0].eval_cases[0].eval_id == "light"
    criteria = Criteria(workbench.editing, dataset)
    assert criteria.unreadable() is None
    used, *_ = criteria.sections()
    assert [(row.name, row.threshold, row.meaning, row.why_not) for row in used.rows] == [
        ("mine", None, "Function of agents-cli: custom_function.", None),
        ("general_quality", None, "Metric of Google's evaluation service.", ANY),
    ]


async def test_a_case_is_edited_undone_and_saved_in_its_own_words(opened):
    workbench, path = opened
    assert answer(workbench, path, 0, "Light is on.")
    assert workbench.editing.dirty_cases(path) == {"light"}
    workbench.editing.undo()
    assert workbench.editing.document(path).text == TEXT
    assert not workbench.editing.is_dirty(path)
    workbench.editing.redo()
    assert await workbench.editing.save_all()
    assert path.read_text() == TEXT.replace("Done.", "Light is on.")
    (shown,) = workbench.sets.listed
    assert (shown.format, shown.eval_set_id) == ("dataset", "basic")
    assert workbench.sets.open(path).eval_set.eval_set_id == "basic"


async def test_cases_are_renamed_moved_and_removed(opened):
    workbench, path = opened
    do = workbench.editing.do
    assert do("rename", path, lambda one: one.rename_case(1, "leave"))
    assert do("move", path, lambda one: one.move_cases([(1, 0)]))
    assert do("remove", path, lambda one: one.delete_cases([1]))
    assert await workbench.editing.save_all()
    (case,) = json.loads(path.read_text())["eval_cases"]
    assert (case["eval_case_id"], case["prompt"]["parts"]) == ("leave", [{"text": "bye"}])


async def test_changes_outside_are_merged_by_case_and_clashes_asked(opened):
    workbench, path = opened
    assert answer(workbench, path, 0, "Light is on.")
    path.write_text(TEXT.replace("Bye", "Farewell"))
    assert await workbench.editing.save_all()
    assert path.read_text() == TEXT.replace("Done.", "Light is on.").replace("Bye", "Farewell")
    assert answer(workbench, path, 0, "mine")
    path.write_text(path.read_text().replace("Light is on.", "theirs"))
    assert not await workbench.editing.save_all()
    (conflict,) = workbench.editing.conflicts
    assert [clash.name for clash in conflict.conflict.cases] == ["light"]


async def test_what_a_dataset_cannot_hold_is_refused_with_a_reason(opened):
    workbench, path = opened
    assert not workbench.editing.do("state", path, lambda one: one.case(0).final_state.put("lamp", "on"))
    assert "cannot hold the state after the last turn" in workbench.messages.notice.text
    assert workbench.editing.document(path).text == TEXT


MARK = """\
evaltui:
  turns:
    - set: basic
      case: light
      turn: 0
      mode: skip
"""


async def test_marks_and_thresholds_are_written_into_the_config_of_agents_cli(opened):
    workbench, path = opened
    config = path.parent / "eval_config.yaml"
    assert workbench.editing.do("skip", path, lambda one: one.case(0).turn(0).set_expectation("unchecked"))
    assert workbench.editing.document(config).text == CONFIG + MARK
    assert workbench.editing.do("rename", path, lambda one: one.rename_case(0, "lamp"))
    renamed = CONFIG + MARK.replace("light", "lamp")
    assert workbench.editing.document(config).text == renamed
    workbench.editing.undo()
    assert workbench.editing.document(config).text == CONFIG + MARK
    workbench.editing.redo()
    criteria = Criteria(workbench.editing, path)
    (mine, _), *_ = (section.rows for section in criteria.sections())
    assert criteria.type(mine, "3")
    assert await workbench.editing.save_all()
    assert config.read_text() == renamed + "  criteria:\n    mine: 3.0\n"
    mine, _ = workbench.sets.open(path).config.config.metrics()
    assert (mine.threshold, mine.is_informational) == (3.0, False)


async def test_a_threshold_gives_a_stored_score_its_verdict(opened, until):
    workbench, path = opened
    (path.parent / "eval_config.yaml").write_text(CONFIG.replace(", general_quality", ""))
    await workbench.sets.read()
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)
    key, criteria = next(iter(workbench.sets.every_case())), Criteria(workbench.editing, path)

    def shown() -> tuple[str, str]:
        (metric, *_) = workbench.outcomes.get(key).result.metrics
        return str(metric.status), metric.reason

    hint = "no threshold; set evaltui.criteria.mine"
    assert shown() == ("INFORMATIONAL", hint)
    for threshold, status in (("2", "PASSED"), ("4", "FAILED")):
        assert criteria.type(criteria.sections()[0].rows[0], threshold)
        criteria.end_move()
        await until(lambda status=status: shown() == (status, ""))
    workbench.editing.undo()
    workbench.editing.undo()
    await until(lambda: shown() == ("INFORMATIONAL", hint))
    # The arrow keys begin with a first threshold.
    assert criteria.move(criteria.sections()[0].rows[0], 1)
    criteria.end_move()
    await until(lambda: shown() == ("PASSED", ""))


@pytest.mark.parametrize("name", ["mine", "tokens"])
@pytest.mark.parametrize("lower", [True, False])
async def test_a_metric_of_agents_cli_has_the_direction_of_its_criterion(
    tmp_path, name, lower, open_workbench
):
    write(tmp_path / "agent.py", AGENT)
    dataset = write(tmp_path / "eval" / "basic.json", TEXT)
    criterion = f"{{threshold: 2, lower_is_better: {str(lower).lower()}}}"
    config = CONFIG.replace("mine", name).replace(", general_quality", "")
    write(tmp_path / "eval" / "eval_config.yaml", f"{config}evaltui:\n  criteria: {{{name}: {criterion}}}\n")
    workbench = await open_workbench(tmp_path)
    workbench.sets.open(dataset)
    (row,) = Criteria(workbench.editing, dataset).sections()[0].rows
    assert (row.lower_is_better, row.interval) == (lower, None)
    assert row.meaning.startswith("Function of agents-cli")


async def test_the_judge_of_a_definition_is_shown_and_kept(tmp_path, open_workbench):
    write(tmp_path / "agent.py", AGENT)
    dataset = write(tmp_path / "eval" / "basic.json", TEXT)
    judge = "judge_model: 'mine:ask', judge_model_sampling_count: 3"
    text = f"metrics_to_run: [safety]\ncustom_metrics: [{{name: safety, {judge}}}]\n"
    write(tmp_path / "eval" / "eval_config.yaml", text)
    workbench = await open_workbench(tmp_path)
    workbench.sets.open(dataset)
    rows = [row for section in Criteria(workbench.editing, dataset).sections() for row in section.rows]
    shown = {row.option.name: (row.value, row.is_set) for row in rows if hasattr(row, "option")}
    assert (shown["judge_model"], shown["num_samples"]) == (("mine:ask", False), (3, False))


async def test_changes_of_the_config_outside_are_merged_by_member(opened):
    workbench, path = opened
    config, criteria = path.parent / "eval_config.yaml", Criteria(workbench.editing, path)
    assert criteria.set_threshold(criteria.sections()[0].rows[0], 3)
    config.write_text(CONFIG + "# theirs\nevaltui:\n  repeats: {runs: 2}  # twice\n")
    assert await workbench.editing.save_all()
    merged = CONFIG + "# theirs\nevaltui:\n  repeats: {runs: 2}  # twice\n  criteria:\n    mine: 3\n"
    assert config.read_text() == merged
    assert criteria.set_threshold(criteria.sections()[0].rows[0], 4)
    config.write_text(merged.replace("mine: 3", "mine: 5"))
    assert not await workbench.editing.save_all()
    (conflict,) = workbench.editing.conflicts
    assert [clash.name for clash in conflict.conflict.members] == ["evaltui.criteria.mine"]


async def test_unsaved_changes_of_the_config_come_back(opened, open_workbench):
    workbench, path = opened
    config, criteria = path.parent / "eval_config.yaml", Criteria(workbench.editing, path)
    assert criteria.set_threshold(criteria.sections()[0].rows[0], 3)
    workbench.editing.open_file(config).recovery.lock.release()
    again = await open_workbench(path.parents[1])
    recovery = Recovery(again, recoverable(path.parents[1]))
    assert await recovery.apply()
    assert again.editing.document(config).text == CONFIG + "evaltui:\n  criteria:\n    mine: 3\n"


async def test_a_config_with_errors_is_not_edited_and_says_so(opened):
    workbench, path = opened
    config = path.parent / "eval_config.yaml"
    config.write_text("metrics_to_run: [mine]\ncustom_metrics:\n  - name: mine\n    execution: far\n")
    await workbench.sets.read()
    why = Criteria(workbench.editing, path).unreadable()
    assert why.startswith("eval_config.yaml is unreadable: ")
    assert "needs prompt_template, custom_function or custom_function_file" in why


async def test_a_dataset_with_errors_says_so(opened):
    workbench, path = opened
    path.write_text(TEXT.replace('"prompt": { "parts": [ { "text": "bye" } ] }', '"prompt": 7'))
    await workbench.sets.read()
    refusal = workbench.editing.refuses_to_edit(path)
    assert refusal.startswith("basic.json is an EvaluationDataset with errors: "), refusal
    assert "eval_cases[1].prompt: must have a content with parts" in refusal


async def test_unsaved_changes_come_back(opened, open_workbench):
    workbench, path = opened
    assert answer(workbench, path, 0, "Light is on.")
    workbench.editing.open_file(path).recovery.lock.release()
    again = await open_workbench(path.parents[1])
    recovery = Recovery(again, recoverable(path.parents[1]))
    assert await recovery.apply()
    assert again.editing.document(path).text == TEXT.replace("Done.", "Light is on.")


async def test_a_case_shows_what_is_not_checked_and_no_mark_of_the_format(opened):
    workbench, path = opened
    (shown,) = workbench.sets.listed
    workbench.sets.open(path)
    workbench.navigation.select(Selection(shown.case_path, "light"))
    workbench.selected.follow()
    texts = {row.label: row.shown for row in workbench.selected.rows}
    assert "evaltui" not in texts
    assert texts["Turn 1"] == "calls not checked"
    assert texts["calls"].startswith("Not checked")


async def test_an_exported_case_shows_what_is_expected_and_no_mark_of_the_format(tmp_path, open_workbench):
    write(tmp_path / "agent.py", AGENT)
    case = {"eval_case_id": "a", "prompt": "hi", "evaltui": {"unspecified": "checked"}}
    path = write(tmp_path / "eval" / "basic.json", json.dumps({"eval_cases": [case]}))
    workbench = await open_workbench(tmp_path)
    (shown,) = workbench.sets.listed
    workbench.sets.open(path)
    workbench.navigation.select(Selection(shown.case_path, "a"))
    workbench.selected.follow()
    texts = {row.label: row.shown for row in workbench.selected.rows}
    await workbench.close()
    assert "evaltui" not in texts
    assert texts["calls"].startswith("No calls")
