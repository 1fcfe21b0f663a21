"""`evaltui compare` of runs that were kept, and of result files of google-adk."""

import json

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set

from evaltui.core.model.variants import Change, Variant
from tests.stored_runs import selected, store_run, summary


def keep(agent, **statuses):
    cases = [summary("lights", case, status, expects="1") for case, status in statuses.items()]
    return store_run(agent, [selected("lights", statuses, whole=True)], cases)


@pytest.fixture
def agent(write_agent):
    return write_agent("")


def test_paths_need_no_agent_and_the_current_folder_is_the_default(agent, monkeypatch, capsys):
    base, candidate = keep(agent, a="PASSED"), keep(agent, a="PASSED")
    assert call("compare", base, candidate) == 0
    monkeypatch.chdir(agent)
    assert call("compare", base.stem, "last") == 0
    assert call("compare", "1", "2") == 0
    printed = capsys.readouterr().out
    assert printed.count("1 unchanged") == printed.count("compared with run 1 (1 case, 1 pass)\n") == 3
    assert call("compare", "1", "3") == 2
    assert "has no run '3'" in capsys.readouterr().err


def test_the_variants_of_two_runs_are_a_difference_between_them(agent, capsys):
    loud, other = (Variant("loud", (Change("env.TONE", tone),)) for tone in ("loud", "louder"))
    base, first, second = (
        store_run(
            agent, [selected("lights", "a", whole=True)], [summary("lights", "a", "PASSED")], variant=variant
        )
        for variant in (Variant("base"), loud, other)
    )
    for runs, change in (
        ((base, first), "base → loud"),
        ((first, second), "loud → loud"),
        ((first, base), "loud → base"),
    ):
        assert call("compare", *runs) == 0
        assert f"between them  variant {change} (env.TONE)\n" in capsys.readouterr().out
    assert call("compare", first, first) == 0
    assert "between them" not in capsys.readouterr().out


def test_data_that_the_agent_writes_itself_is_no_difference_between_runs(write_agent, capsys):
    agent = write_agent(
        "from pathlib import Path\n\n\n"
        "def root_agent(message, session):\n"
        "    with (Path(__file__).parent / 'notes.txt').open('a') as notes:\n"
        "        notes.write(message)\n"
        "    return message\n"
    )
    write_eval_set(agent, "notes", make_case("a", make_turn("hi", "hi", [])))
    for _ in range(3):
        assert call("run", agent) == 0
    (agent / "prompt.txt").write_text("Be short.")
    assert call("run", agent) == 0
    capsys.readouterr()
    for base in "123":
        assert call("compare", agent, base, "4") == 0
        assert "between them  agent: prompt.txt (new)\n" in capsys.readouterr().out


def test_a_result_file_of_google_adk(agent, capsys):
    results = agent / ".adk" / "eval_history"
    results.mkdir(parents=True)
    entries = [
        {"eval_id": "a", "final_eval_status": 1, "session_id": "s"},
        {"eval_id": "z", "final_eval_status": 1, "session_id": "s"},
    ]
    text = json.dumps(json.dumps({"eval_set_id": "lights", "eval_case_results": entries}))
    (results / "my_agent_lights_17.25.evalset_result.json").write_text(text)
    keep(agent, a="FAILED", b="PASSED")
    assert call("compare", agent, "my_agent_lights", "last") == 0
    assert capsys.readouterr().out.splitlines() == [
        "compared with my_agent_lights_17.25 (2 cases, 2 pass)",
        "  broken   a  ✓ → ✗",
        # It does not say whether it had all cases.
        "  gone     z  ✓",
        "  1 broken, 1 gone, 1 not run",
        "  better on 0, worse on 1 of 1 case: p = 1 (exact McNemar test)",
    ]


def test_a_failure_in_a_result_file_of_google_adk_excuses_none(agent, capsys):
    """The file does not say what was expected, which may have been something else."""
    results = agent / ".adk" / "eval_history"
    results.mkdir(parents=True)
    entries = [{"eval_id": "a", "final_eval_status": 2, "session_id": "s"}]
    text = json.dumps({"eval_set_id": "lights", "eval_case_results": entries})
    (results / "my_agent_lights_17.25.evalset_result.json").write_text(text)
    keep(agent, a="FAILED")
    assert call("compare", agent, "my_agent_lights", "last", "--fail-on-regression") == 1
    assert "the baseline does not say what was expected" in capsys.readouterr().out
    assert call("compare", agent, "last", "my_agent_lights", "--fail-on-regression") == 1
    assert "the candidate does not say what was expected" in capsys.readouterr().out


def write_adk_result(agent, entries):
    results = agent / ".adk" / "eval_history"
    results.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"eval_set_id": "lights", "eval_case_results": entries})
    (results / "of_adk_1.evalset_result.json").write_text(text)


def test_an_entry_of_google_adk_that_is_no_object_is_no_absent_case(agent, capsys):
    write_adk_result(agent, [{"eval_id": "a", "final_eval_status": 1, "session_id": "s"}, "b"])
    keep(agent, a="PASSED")
    assert call("compare", agent, "last", "of_adk_1") == 2
    assert "`eval_case_results[1]` is not an object" in capsys.readouterr().err


def test_an_entry_of_google_adk_passes_with_no_failing_metric(agent, capsys):
    metric = {"metric_name": "response_match_score", "threshold": 0.8, "score": 0.1, "eval_status": 2}
    entry = {"eval_id": "a", "final_eval_status": 1, "session_id": "s"}
    write_adk_result(agent, [{**entry, "overall_eval_metric_results": [metric]}])
    keep(agent, a="PASSED")
    assert call("compare", agent, "last", "of_adk_1") == 0
    assert "a  ✓ → ✗" in capsys.readouterr().out
