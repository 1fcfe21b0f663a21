"""Nothing that a run writes or prints holds a secret, and no verdict changes for that."""

from __future__ import annotations

import json

import pytest
from fake_runs import run_without_processes, says

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set

PASSWORD = 'tr0ub4dor&3 "quoted"'
AWS = "AKIAIOSFODNN7EXAMPLE"
SECRETS = (PASSWORD, json.dumps(PASSWORD)[1:-1], "tr0ub4dor", AWS)

AGENT = f"""
import os

def root_agent(message, session):
    print("agent prints", os.environ["SHOP_PASSWORD"])
    if message == "fail":
        raise RuntimeError("cannot log in with " + os.environ["SHOP_PASSWORD"])
    return "the key is {AWS} and the password " + os.environ["SHOP_PASSWORD"]
"""
KINDS = ("json", "junit", "csv", "markdown", "html")


def a_case(eval_id, message, answer):
    return make_case(eval_id, make_turn(message, answer))


@pytest.fixture
def shop(write_agent):
    agent = write_agent(AGENT)
    (agent / ".env").write_text("SHOP_PASSWORD='" + PASSWORD + "'\n")
    said = f"the key is {AWS} and the password {PASSWORD}"
    write_eval_set(
        agent,
        "shop",
        a_case("equal", "hi", said),
        a_case("other", "hi", f"the secret was {PASSWORD}, and the rest is another answer"),
        a_case("broken", "fail", said),
    )
    config = {"criteria": {"response_match_score": 1}}
    (agent / "test_config.json").write_text(json.dumps(config))
    return agent


def test_nothing_that_a_run_writes_holds_a_secret(shop, tmp_path, capfd):
    reports = [f"--report={kind}={tmp_path / kind}" for kind in KINDS]
    assert call("run", shop, "--workers", "1", "--report=console", *reports) == 1
    printed = capfd.readouterr()
    statuses = {one["eval_id"]: one["status"] for one in json.loads((tmp_path / "json").read_text())["cases"]}
    # What is expected is compared with what was said, not with what is written of it.
    assert statuses == {"equal": "PASSED", "other": "FAILED", "broken": "ERROR"}
    texts = {"stdout": printed.out, "stderr": printed.err}
    texts |= {kind: (tmp_path / kind).read_text() for kind in KINDS}
    kept = [*(shop / ".evaltui" / "runs").iterdir(), *(shop / ".adk" / "eval_history").iterdir()]
    assert len(kept) == 2
    texts |= {file.name: file.read_text(errors="replace") for file in kept}
    found = {name: [one for one in SECRETS if one in text] for name, text in texts.items()}
    assert not any(found.values()), found
    for name in ("stdout", "json", kept[0].name, kept[1].name):
        assert "<SHOP_PASSWORD>" in texts[name]
    assert call("compare", shop, "last", "last", "--report=json") == 0
    assert not any(one in capfd.readouterr().out for one in SECRETS)


def test_a_recorded_case_holds_no_secret_and_passes(shop, tmp_path, capfd):
    turns = tmp_path / "turns.txt"
    turns.write_text("hi\n")
    assert call("record", shop, "new.evalset.json", "--case", "said", "--turns", turns) == 0
    text = (shop / "new.evalset.json").read_text()
    assert "the key is <key> and the password <SHOP_PASSWORD>" in text
    assert not any(one in text for one in SECRETS)
    capfd.readouterr()
    assert call("run", shop, "new", "--workers", "1") == 0
    printed = capfd.readouterr()
    assert not any(one in printed.out + printed.err for one in SECRETS)


async def test_what_is_scored_again_from_a_log_comes_out_as_in_the_run(shop):
    workbench = Workbench(shop)
    await workbench.open()
    (entry,) = workbench.sets.listed
    workbench.runs.run_set()
    await workbench.runs.finished()

    def outcomes():
        return [str(workbench.outcomes.status(CaseId(entry.case_path, case.eval_id))) for case in entry.cases]

    assert outcomes() == ["PASSED", "FAILED", "ERROR"]
    # Both are still compared with the secrets that the log does not have.
    for threshold, expected in [(0.1, ["PASSED", "PASSED", "ERROR"]), (1, ["PASSED", "FAILED", "ERROR"])]:
        criteria = Criteria(workbench.editing, entry.path)
        (row,) = (row for row in criteria.sections()[0].rows if isinstance(row, MetricRow))
        assert criteria.set_threshold(row, threshold)
        await workbench.outcomes.rescored([criteria.path])
        assert outcomes() == expected
    await workbench.close()


LOGIN = """
from evaltui import events

async def root_agent(message, session):
    yield events.tool_call("log_in", {"key": "sk-bbbbbbbbbbbbbbbbbbbbbbbb"})
    yield events.tool_result("log_in", {})
    session.state["url"] = "postgres://shop:second@db"
    yield "Done."
"""
LOGGED_IN = {"url": "postgres://shop:second@db"}


@pytest.mark.parametrize("message", ["hi", "what is the <key> and the <password>?"])
def test_another_key_is_no_pass_because_both_are_masked(write_agent, monkeypatch, message):
    """One `<key>` is like another: the verdict is that of the keys, or there is none."""
    agent = write_agent(LOGIN)
    monkeypatch.chdir(agent)

    def case(eval_id, key, **state):
        calls = [{"name": "log_in", "args": {"key": key}}]
        return {**make_case(eval_id, make_turn(message, "Done.", calls=calls)), **state}

    right = f"sk-{'b' * 24}"
    write_eval_set(
        agent,
        "shop",
        case("right", right, final_session_state=LOGGED_IN),
        case("masked", "<key>"),
        case("key", f"sk-{'a' * 24}"),
        case("state", right, final_session_state={"url": "postgres://shop:first@db"}),
    )

    def statuses(*words):
        call(*words, "--report=json=report.json")
        cases = json.loads((agent / "report.json").read_text())["cases"]
        return [one["status"] for one in cases]

    wrong = "NOT_EVALUATED" if "<" in message else "FAILED"
    assert statuses("run", ".") == ["PASSED", "PASSED", wrong, wrong]
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    assert statuses("score", "run.json") == ["NOT_EVALUATED", "PASSED", "NOT_EVALUATED", "NOT_EVALUATED"]
    # Nor with the verdicts of google-adk, which passes over what has none.
    assert statuses("score", "run.json", "--adk-verdicts")[2] != "PASSED"


def test_a_case_with_the_value_of_a_secret_as_its_id_is_the_same_in_a_comparison(
    write_agent, monkeypatch, tmp_path
):
    agent = write_agent("root_agent = lambda message: message")
    (agent / ".env").write_text("API_TOKEN=night_mode\n")
    (agent / "test_config.json").write_text('{"criteria": {"response_match_score": 1}}')
    write_eval_set(agent, "thermostat", a_case("night_mode", "hi", "right"))
    page = tmp_path / "page.html"
    for text, words in (("right", ()), ("wrong", ("--baseline", "last"))):
        run_without_processes(monkeypatch, says(text))
        call("run", agent, "--report", f"html={page}", *words)
    assert page.read_text().count('data-change="broken" data-regression') == 1
