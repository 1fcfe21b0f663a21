import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stored_runs import add_case

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.variants import Change, Variant
from evaltui.core.secrets import Secrets
from evaltui.project.run_settings import RunSettings
from evaltui.runs import history
from evaltui.runs.history import case_history, find_run, name_run, open_run
from evaltui.runs.listing import newest_run, read_row
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_kind import ROOT_AGENT
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.store import RunStore

P, F = Status.PASSED, Status.FAILED
CONFIG = {"criteria": {"response_match_score": 0.8}}


PATH = "evals/lights.evalset.json"


def lights(case):
    return CaseId(PATH, case)


def keep(agent, statuses, *, number=0, closed=True, header=None, **fields):
    """A run in which these cases came out so."""
    known = {"started": datetime(2026, 1, 2, 3, 4, number, tzinfo=UTC), **(header or {})}
    # Within a millisecond, ids do not tell which run came first.
    path = RunStore(agent).make() / f"20260102T0000{number:02}.000Z-abcdef.sqlite"
    selected = SelectedSet(PATH, "lights", tuple(statuses), CONFIG, whole=True)
    log = RunWriter(path, RunHeader((selected,), **known), Secrets())
    log.set_agent({"name": "home", "model": "gemini-1"})
    for case, status in statuses.items():
        if status is None:
            continue
        log.start(lights(case), "lights", 0)
        named = {"path": PATH, "set": "lights", "case": case}
        log.add_event(Event.from_json({"kind": "text", **named, "repeat": 0, "turn": 0, "agent": "home"}))
        log.add_repeat(lights(case), "lights", 0, RepeatResult(status, seconds=1.5, expects="x"))
        passed = {"passed": int(status is P), "policy_met": status is P}
        summary = {"scores": {"response_match_score": number / 10}, "expects": "x", **fields}
        add_case(log, CaseSummary("lights", case, status, **passed, **summary, path=PATH))
    log.close(Ending(P, 2.5) if closed else None)
    return path


@pytest.mark.parametrize("number", ["2", "20", "202601"])
def test_a_number_that_no_run_has_is_no_beginning_of_an_id(number, tmp_path):
    """Else a run would be compared with the only one that there is, whichever that is."""
    keep(tmp_path, {"a": P})
    with pytest.raises(SelectionError, match=f"has no run '{number}'"):
        find_run(RunStore(tmp_path), number)


def test_finding_runs(tmp_path):
    with pytest.raises(SelectionError, match=r"no runs of .* yet"):
        find_run(RunStore(tmp_path), "last")
    with pytest.raises(SelectionError, match="has no run '2026'"):
        find_run(RunStore(tmp_path), "2026")
    first, second = (keep(tmp_path, {"a": P}, number=number) for number in (1, 12))
    (first.parent / "20269999-notes.txt").touch()
    results = tmp_path / ".adk" / "eval_history"
    results.mkdir(parents=True)
    (results / "home_lights_17.5.evalset_result.json").write_text("{}")
    assert find_run(RunStore(tmp_path), "last") == second
    assert find_run(RunStore(tmp_path), first.stem) == first
    assert find_run(RunStore(tmp_path), "20260102T00001") == second
    assert find_run(RunStore(tmp_path), str(first)) == first
    assert find_run(RunStore(Path("/")), str(first)) == first
    assert find_run(RunStore(tmp_path), "home_lights").name == "home_lights_17.5.evalset_result.json"
    with pytest.raises(SelectionError, match=f"'20260102' matches 2 runs: {first.stem}, {second.stem}"):
        find_run(RunStore(tmp_path), "20260102")
    readme = tmp_path / "README.md"
    readme.touch()
    with pytest.raises(SelectionError, match=r"README\.md is no run: the file of a run ends in \.sqlite"):
        find_run(RunStore(tmp_path), str(readme))
    name_run(RunStore(tmp_path), "last", "before")
    with pytest.raises(SelectionError, match="Did you mean before"):
        find_run(RunStore(tmp_path), "befor")


def test_names(tmp_path):
    first, second = (keep(tmp_path, {"a": P}, number=number) for number in (1, 2))
    assert RunStore(tmp_path).names() == {}
    assert name_run(RunStore(tmp_path), "last", "before") == second.stem
    assert name_run(RunStore(tmp_path), "20260102T000001", "old") == first.stem
    assert RunStore(tmp_path).names() == {"before": second.stem, "old": first.stem}
    assert find_run(RunStore(tmp_path), "before") == second
    name_run(RunStore(tmp_path), "old", "before")
    assert find_run(RunStore(tmp_path), "before") == first
    invalid = ("", " ", "\t", "\u3000", "before ", "be\x1bfore", "be\nfore", "\u200b")
    for name in (*invalid, "last", "1", second.stem, "x.sqlite"):
        with pytest.raises(SelectionError, match="is not a valid run name"):
            name_run(RunStore(tmp_path), "last", name)
    name_run(RunStore(tmp_path), "last", "20260101T")
    second.unlink()
    with pytest.raises(SelectionError, match=f"run {second.stem}, named '20260101T', is gone"):
        find_run(RunStore(tmp_path), "20260101T")
    (first.parent / "names.json").write_text("[1")
    assert RunStore(tmp_path).names() == {}


def test_a_run_is_opened_with_its_summaries(tmp_path):
    header = {"files": {"agent.py": "1"}, "settings": RunSettings(adk_verdicts=True)}
    path = keep(tmp_path, {"b": F, "a": P, "c": None}, number=5, header=header)
    run = open_run(path)
    assert (run.id, run.status, run.seconds) == (path.stem, P, 2.5)
    assert list(run.summary.cases) == [lights("b"), lights("a"), lights("c")]
    assert run.summary.cases[lights("a")].scores == {"response_match_score": 0.5}
    assert run.summary.unfinished == [lights("c")]
    assert run.summary.whole == {PATH}
    circumstances = run.summary.circumstances
    assert (circumstances.files, circumstances.agent, circumstances.model) == (
        {"agent.py": "1"},
        "home",
        "gemini-1",
    )
    assert circumstances.configs == {PATH: normal_config(CONFIG)}
    assert circumstances.adk_verdicts
    case = run.case(lights("b"))
    assert (case.status, case.repeats[0].seconds, case.repeats[0].expects) == (F, 1.5, "x")
    assert [event.kind for event in run.events(lights("b"))[0]] == ["text"]
    without = run.case(lights("c"))
    assert (without.status, without.reason, run.events(lights("c"))) == (
        Status.NOT_EVALUATED,
        "did not run",
        {},
    )
    with pytest.raises(KeyError):
        run.case(lights("d"))


RESULT = {
    "eval_set_result_id": "home_lights_17.5",
    "eval_set_id": "lights",
    "creation_timestamp": 1767323045.0,
    "eval_case_results": [
        {"eval_set_id": "lights", "eval_id": "a", "final_eval_status": 1, "session_id": "s"},
        {"eval_set_id": "lights", "eval_id": "a", "final_eval_status": 1, "session_id": "t"},
    ],
}


@pytest.mark.parametrize("encodings", [1, 2], ids=["plain", "double-encoded"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["", "BOM"])
def test_a_result_file_of_google_adk_is_a_run(tmp_path, encodings, bom):
    text = json.dumps(RESULT, indent=2)
    if encodings == 2:
        text = json.dumps(text)
    path = tmp_path / "home_lights_17.5.evalset_result.json"
    path.write_text(bom + text, encoding="utf-8")
    run = open_run(path)
    assert (run.id, run.status) == ("home_lights_17.5", P)
    assert run.started.timestamp() == 1767323045.0
    assert run.summary.cases[CaseId("lights", "a")].runs == 2
    assert [repeat.session_id for repeat in run.case(CaseId("lights", "a")).repeats] == ["s", "t"]
    assert run.events(CaseId("lights", "a")) == {}


@pytest.mark.parametrize("text", ["", "[]", '"text"', '"[1"', "{}", "not json"])
def test_what_is_no_result_file(tmp_path, text):
    path = tmp_path / "x.evalset_result.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a result file of google-adk"):
        open_run(path)


def test_a_case_over_time(tmp_path):
    header = {"files": {"prompts.py": "1"}}
    keep(tmp_path, {"a": F, "b": P}, number=1, header=header)
    keep(tmp_path, {"a": P}, number=2)
    keep(tmp_path, {"a": P}, number=3, header=header)
    keep(tmp_path, {"b": P}, number=4, header=header)
    (tmp_path / ".evaltui" / "runs" / "20260102T000005.000Z-abcdef.sqlite").write_text("damaged\n")
    keep(tmp_path, {"a": F}, number=6, header={"files": {"prompts.py": "2"}}, closed=False, expects="y")
    found = case_history(RunStore(tmp_path), ROOT_AGENT, lights("a"))
    assert [point.summary.status for point in found.points] == [F, P, P, F]
    assert [point.started.second for point in found.points] == [1, 2, 3, 6]
    assert found.last_passed is found.points[2]
    assert found.changed_since == ("agent: prompts.py", "case changed")
    assert found.values() == [0.0, 1.0, 1.0, 0.0]
    assert found.values("response_match_score") == [0.1, 0.2, 0.3, 0.6]
    assert found.values("safety_v1") == [None] * 4
    assert open_run(found.points[0].path).case(lights("a")).status is F
    last_two = case_history(RunStore(tmp_path), ROOT_AGENT, lights("a"), last=2)
    assert [point.started.second for point in last_two.points] == [3, 6]
    never = case_history(RunStore(tmp_path), ROOT_AGENT, lights("nothing"))
    assert (never.points, never.last_passed, never.changed_since, never.values()) == ((), None, (), [])


OTHERS = {
    "module": {"module": "desk"},
    "in_process": {"in_process": True},
    "variant": {"variant": Variant("lite", (Change("model", "gemini-lite"),))},
    "sub-agent": {"agent_name": "helper"},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_run_of_another_agent_is_neither_in_the_history_nor_the_newest_run(tmp_path, other):
    own = keep(tmp_path, {"a": F}, number=1)
    keep(tmp_path, {"a": P}, number=2, header=OTHERS[other])
    found = case_history(RunStore(tmp_path), ROOT_AGENT, lights("a"))
    assert [point.path for point in found.points] == [own]
    assert newest_run(RunStore(tmp_path), ROOT_AGENT).path == own


KINDS = {
    "adk_verdicts": {"settings": RunSettings(adk_verdicts=True)},
    "traces": {"traces": ("traces.json",)},
}


@pytest.mark.parametrize("other", KINDS)
def test_a_run_of_another_kind_is_not_the_one_in_which_a_case_last_passed(tmp_path, other):
    passed = keep(tmp_path, {"a": P}, number=1)
    keep(tmp_path, {"a": P}, number=2, header=KINDS[other])
    keep(tmp_path, {"a": F}, number=3)
    found = case_history(RunStore(tmp_path), ROOT_AGENT, lights("a"))
    assert len(found.points) == 3
    assert found.last_passed.path == passed


def test_a_run_of_a_variant_is_called_by_it(tmp_path):
    path = keep(tmp_path, {"a": P}, number=2, header=OTHERS["variant"] | {"number": 18})
    assert read_row(path).title == "run 18 lite"


def test_names_that_are_given_at_once_are_all_kept(tmp_path, monkeypatch):
    log = tmp_path / "20260101T000000.000Z-abcdef.sqlite"
    log.write_text("")
    monkeypatch.setattr(history, "find_run", lambda store, ref: log)
    names = {f"name {number}" for number in range(30)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: history.name_run(RunStore(tmp_path), "last", name), names))
    assert set(RunStore(tmp_path).names()) == names
