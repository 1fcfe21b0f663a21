"""A config of another name or in another folder than its set's: edited, merged, saved, recovered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.merge import Choices
from evaltui.documents.recovery import recoverable
from evaltui.tui.dialogs.unsaved import Recovery
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

MARK = {"set": "greetings", "case": "good", "turn": 0, "mode": "context"}


@pytest.fixture(params=["beside", "above", "given"])
def house(request, write_agent, write_set, tmp_path):
    """An agent, its set in a folder of tests, the config, and whether that is given as `--config`."""
    folder = write_agent("def root_agent(message):\n    return message\n")
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    sets = folder / "tests" / "eval" / "evalsets"
    sets.mkdir(parents=True)
    write_set(sets, good=("hello", "hello"), bad=("hello", "something else"))
    places = {
        "beside": sets / "eval_config.json",
        "above": sets.parent / "eval_config.json",
        "given": tmp_path / "strict.json",
    }
    config = places[request.param]
    write_config(config, response_match_score=0.5)
    return folder, config, request.param == "given"


def write_config(config: Path, mark=MARK, **criteria):
    config.write_text(json.dumps({"criteria": criteria, "evaltui": {"turns": [mark]}}, indent=2))


def config_of(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


async def opened(house) -> tuple[Workbench, Path]:
    folder, config, given = house
    workbench = Workbench(folder, config=config if given else None)
    await workbench.open()
    return workbench, workbench.sets.listed[0].path


def rename(workbench, path, new="better"):
    good, renamed = (CaseId(workbench.sets.case_path(path), one) for one in ("good", new))
    number = workbench.sets.by_case_path(good.path).number(good.eval_id)
    return workbench.editing.do(
        f"rename good to {new}",
        path,
        lambda eval_set: eval_set.rename_case(number, new),
        after=Selection(*renamed),
        moved={good: renamed},
    )


def names(path: Path) -> list[str]:
    return [case["eval_id"] for case in config_of(path)["eval_cases"]]


async def test_a_change_of_it_outside_is_merged_and_undo_leaves_that(house):
    workbench, path = await opened(house)
    config = house[1]
    assert rename(workbench, path)
    write_config(config, response_match_score=0.9, safety_v1=1.0)
    await workbench.editing.merge_outside_changes()
    assert not workbench.editing.conflicts
    assert await workbench.editing.save_all()
    assert names(path) == ["better", "bad"]
    assert config_of(config)["criteria"] == {"response_match_score": 0.9, "safety_v1": 1.0}
    assert config_of(config)["evaltui"]["turns"] == [MARK | {"case": "better"}]
    workbench.editing.undo()
    assert await workbench.editing.save_all()
    assert names(path) == ["good", "bad"]
    assert config_of(config)["evaltui"]["turns"] == [MARK]
    assert config_of(config)["criteria"] == {"response_match_score": 0.9, "safety_v1": 1.0}


async def test_what_both_changed_in_it_is_asked_by_member_and_its_set_waits(house):
    workbench, path = await opened(house)
    config = house[1]
    assert workbench.editing.do(
        "threshold",
        path,
        lambda eval_set: ConfigEditor(eval_set.config).set_threshold("response_match_score", 0.7),
    )
    assert rename(workbench, path)
    write_config(config, response_match_score=0.9)
    assert not await workbench.editing.save_all()
    assert names(path) == ["good", "bad"]
    (clash,) = workbench.editing.conflicts
    assert clash.path == config
    assert clash.conflict.reason is None
    assert [one.name for one in clash.conflict.members] == ["criteria.response_match_score"]
    assert await workbench.editing.settle(clash, Choices(members={"criteria.response_match_score": "mine"}))
    assert names(path) == ["better", "bad"]
    assert config_of(config)["criteria"] == {"response_match_score": 0.7}


async def test_deleted_outside_it_scores_no_more_and_is_no_set(house):
    workbench, path = await opened(house)
    config = house[1]
    assert rename(workbench, path)
    assert await workbench.editing.save_all()
    config.unlink()
    await workbench.editing.merge_outside_changes()
    assert [entry.path for entry in workbench.sets.listed] == [path]
    in_use = workbench.sets.last_opened(path).config
    assert in_use is None or in_use.path is None
    workbench.editing.undo()
    assert [entry.path for entry in workbench.sets.listed] == [path]


async def test_another_one_that_comes_beside_the_set_scores_it(house):
    workbench, path = await opened(house)
    if house[2]:
        return
    assert rename(workbench, path)
    beside = path.parent / "test_config.json"
    write_config(beside, safety_v1=1.0)
    await workbench.open()
    assert workbench.sets.last_opened(path).config.path == beside
    workbench.editing.undo()
    assert workbench.sets.last_opened(path).config.path == beside
    assert not workbench.editing.unsaved()


async def test_edits_of_it_are_recovered(house):
    workbench, path = await opened(house)
    config = house[1]
    assert rename(workbench, path)
    # The locks end with the process; this one goes on.
    for file in (path, config):
        workbench.editing.open_file(file).recovery.lock.release()
    write_config(config, response_match_score=0.9)
    again, path = await opened(house)
    recovery = Recovery(again, recoverable(house[0]))
    assert await recovery.apply()
    assert [entry.path for entry in again.sets.listed] == [path]
    assert not again.editing.conflicts
    assert await again.editing.save_all()
    assert names(path) == ["better", "bad"]
    assert config_of(config)["evaltui"]["turns"] == [MARK | {"case": "better"}]
    assert config_of(config)["criteria"] == {"response_match_score": 0.9}
