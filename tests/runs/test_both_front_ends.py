"""A run is the same run wherever it was begun: on the command line or in the workbench."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from eval_data import make_case, make_turn, write_eval_set

from evaltui.cli import main
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode
from evaltui.runs.listing import stored_runs
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from evaltui.workbench.state import RepeatChoice, Selection
from evaltui.workbench.workbench import Workbench

AGENT = """
    from pathlib import Path
    from evaltui.events import text, tool_call

    async def root_agent(message, session):
        errors = Path(__file__).with_name("errors.txt")
        if errors.exists() and message in errors.read_text().split():
            raise RuntimeError("no")
        if message == "ring":
            yield tool_call("ring", {"times": 2})
        yield text(f"{session.user_id} says {message}")
"""


def cases(**messages: list[str]) -> list[dict[str, Any]]:
    return [
        make_case(eval_id, *(make_turn(text, f"test_user_id says {text}", []) for text in texts))
        for eval_id, texts in messages.items()
    ]


@pytest.fixture
def agent(write_agent) -> Path:
    folder: Path = write_agent(AGENT)
    (folder / "evals").mkdir()
    for name, messages in (("a", {"good": ["hi", "bye"], "calls": ["ring"]}), ("b", {"good": ["hello"]})):
        path = write_eval_set(folder / "evals", name, *cases(**messages))
        path.write_text(json.dumps(json.loads(path.read_text()) | {"eval_set_id": "home"}))
    one, two = cases(one=["one"], two=["ring", "two"])
    asked = {"session_input": {"app_name": "a", "user_id": "ann", "state": {"n": 1}}}
    write_eval_set(folder, "other", one | asked, two)
    return folder


def on_command_line(agent: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["run", str(agent), *words])
    return int(left.value.code or 0)


def in_workbench(agent: Path, do: Callable[[Workbench], Any], **settings: Any) -> str:
    """What the workbench said in the end, "" for nothing."""

    async def sit() -> str:
        workbench = Workbench(agent, **settings)
        try:
            await workbench.open()
            if asyncio.iscoroutine(begun := do(workbench)):
                await begun
            await workbench.runs.finished()
            return workbench.messages.notice.text if workbench.messages.notice else ""
        finally:
            await workbench.close()

    return asyncio.run(sit())


# What no two runs have in common.
_TIMES = [
    "started",
    "seconds",
    "times",
    "duration",
    "model_duration",
    "tool_duration",
    "t",
    "creation_timestamp",
    "number",
    "session_id",
    "invocation_id",
    "eval_set_result_id",
    "eval_set_result_name",
    "events",
    "repeats_at",
    "invocation_duration_v1",
]


def without_times(data: Any) -> Any:
    if isinstance(data, list):
        return [without_times(one) for one in data]
    if not isinstance(data, dict):
        return data
    if "invocation_duration_v1" in (data.get("name"), data.get("metric_name")):
        return "a duration"
    return {name: None if name in _TIMES else without_times(value) for name, value in data.items()}


def kept(agent: Path) -> dict[str, Any]:
    """What the newest run has left, without what differs between two runs of the same; then it is no more."""
    log = RunStore(agent).latest()
    assert log is not None
    results, file = sorted((agent / ".adk" / "eval_history").iterdir()), RunFile(log)
    header, ending = file.header, file.ending
    left = {
        "header": without_times(header.to_json()),
        "sets": header.sets,
        "agent": file.agent,
        "repeats": sorted((one.case, one.repeat, str(without_times(one.data))) for one in file.repeats),
        "cases": sorted((one.id, str(without_times(asdict(one.summary)))) for one in file.cases),
        "ending": ending and ending.status,
        "adk": sorted((without_times(json.loads(path.read_text())) for path in results), key=json.dumps),
        "adk names": sorted(path.name.rsplit("_", 2)[0] for path in results),
        "listed": len(stored_runs(RunStore(agent))),
        "modes": {oct(path.stat().st_mode) for path in (log, *results)},
    }
    for path in (log, *results):
        path.unlink()
    return left


@dataclass(frozen=True)
class Asked:
    words: tuple[str, ...]
    do: Callable[[Workbench], Any]
    config: str = ""
    record: RecordMode = DEFAULT_MODE
    options: dict[str, Any] = field(default_factory=dict)


def select(workbench: Workbench, name: str, eval_id: str | None = None) -> None:
    path = next(entry.case_path for entry in workbench.sets.listed if entry.path.name == name)
    workbench.navigation.select(Selection(path, eval_id))


def a_case(workbench: Workbench) -> None:
    select(workbench, "a.evalset.json", "calls")
    workbench.runs.run_case()


def a_set(workbench: Workbench) -> None:
    select(workbench, "other.evalset.json")
    workbench.runs.run_set()


def several_times(workbench: Workbench) -> None:
    select(workbench, "other.evalset.json")
    workbench.runs.run_case(RepeatChoice(3, "majority"))


def some(workbench: Workbench) -> None:
    paths = {entry.path.name: entry.case_path for entry in workbench.sets.listed}
    keys = [CaseId(paths["a.evalset.json"], "good"), CaseId(paths["other.evalset.json"], "two")]
    workbench.runs.run_cases("some", keys)


ASKED = {
    "everything": Asked((), lambda workbench: workbench.runs.run_all()),
    "a case of a twin": Asked(("evals/a.evalset.json:calls",), a_case),
    "a set": Asked(("other",), a_set),
    "several times": Asked(("other", "--runs", "3", "--pass-if", "majority"), several_times),
    "cases of two sets": Asked(("evals/a.evalset.json:good", "other:two"), some),
    "a config for all": Asked((), lambda workbench: workbench.runs.run_all(), config='{"criteria": {}}'),
    "replayed": Asked(("other", "--record", "replay"), a_set, record="replay"),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_same_is_kept(agent, tmp_path, name, capsys):
    asked = ASKED[name]
    (agent / "errors.txt").write_text("two bye")
    words, settings = list(asked.words), {}
    if asked.config:
        config = tmp_path / "config.json"
        config.write_text(asked.config)
        words += ["--config", str(config)]
        settings = {"config": config}
    on_command_line(agent, *words)
    first = kept(agent)
    assert first["listed"] == 1
    in_workbench(agent, asked.do, options={"record": asked.record}, **settings)
    assert kept(agent) == first


def interrupted(agent: Path) -> Path:
    """A run that ended before its end, and in which the first try of a case was an error."""
    (agent / "errors.txt").write_text("two")
    on_command_line(agent, "other", "--runs", "2")
    log = RunStore(agent).latest()
    assert log is not None
    with sqlite3.connect(log) as db:
        db.execute("UPDATE run SET status = NULL")
        db.execute("UPDATE cases SET status = NULL")
        db.execute(
            "DELETE FROM repeats WHERE repeat = 0 AND case_id = (SELECT id FROM cases WHERE eval_id = 'one')"
        )
    for path in (agent / ".adk" / "eval_history").iterdir():
        path.unlink()
    return log


def test_the_rest_of_a_run_is_the_same(agent, capsys):
    log = interrupted(agent)
    on_command_line(agent, "--resume", log.stem)
    first = kept(agent)
    assert first["header"]["resumed"] == log.stem
    assert len(first["repeats"]) == 4
    assert in_workbench(agent, lambda workbench: workbench.runs.resume(log)) == ""
    assert kept(agent) == first


SET, ANSWER = "other.evalset.json", "test_user_id says one"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param(SET, ANSWER, "something else", id="case"),
        pytest.param("test_config.json", "", '{"criteria": {"response_match_score": 0.1}}', id="config"),
        pytest.param("more.py", "", "", id="agent"),
        pytest.param(SET, None, None, id="no set"),
        pytest.param(SET, '"other"', '"another"', id="another set"),
        pytest.param(SET, '"two"', '"three"', id="no case"),
    ],
)
def test_a_run_does_not_go_on_for_the_same_reason(agent, name, old, new, capsys):
    """Of the changed case only the second run was finished: every one is held against what it expects now."""
    log, path = interrupted(agent), agent / name
    if old is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new, 1) if old else new)
    capsys.readouterr()
    assert on_command_line(agent, "--resume", log.stem) == 2
    said = capsys.readouterr().err
    reason = said.partition("cannot be resumed: ")[2].partition(". Run all cases instead")[0]
    assert reason
    assert in_workbench(agent, lambda workbench: workbench.runs.resume(log)) == f"Cannot resume: {reason}"


def test_what_names_a_run_names_it_everywhere(agent, capsys):
    in_workbench(agent, lambda workbench: workbench.runs.run_all())
    log = RunStore(agent).latest()
    assert log is not None
    with pytest.raises(SystemExit):
        main(["runs", str(agent), "--name", "last", "before"])
    assert RunStore(agent).names_by_run() == {log.stem: ("before",)}
    assert on_command_line(agent, "--baseline", "before", "--fail-on-regression") == 0
