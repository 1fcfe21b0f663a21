"""A model that is silently answered by another one: which reports tell, and what is no regression."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from gemini_server import GeminiServer, says

SAMPLE = Path(__file__).parents[2] / "sample_agents" / "library_desk"
ASKED, SAME, OTHER, JUDGE = (
    "gemini-2.5-flash",
    "gemini-2.5-flash-001",
    "gemini-3.5-flash-lite",
    "gemini-2.5-pro",
)
AGENT = f"""
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="{ASKED}", instruction="Greet.")
"""
OPTIONS = {"judge_model": JUDGE, "num_samples": 1}
CRITERIA = {
    "response_match_score": 0.9,
    "final_response_match_v2": {"threshold": 0.5, "judge_model_options": OPTIONS},
}
VALID = '{"reasoning": "the same", "is_the_agent_response_valid": "valid"}'
CASES = [f"c{number:02}" for number in range(1, 32)]
BEHIND = CASES[24:]
FORMATS = ("json", "markdown", "html", "console")
ONE_BY_ONE = ("--parallel", 1, "--workers", 1)
AGENT_NOTE = f"{ASKED} was served by {OTHER}: agent, 13 calls, the first in case c25, turn 2, call 1"
JUDGE_NOTE = (
    f"{JUDGE} was served by {OTHER}: judge of final_response_match_v2, 13 votes, "
    "the first in case c25, turn 2, vote 1"
)


class Swapping(GeminiServer):
    """Answers a name by another model from its 50th response on, and otherwise from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.swaps = False
        self.wrong: set[str] = set()
        self.respond = self._answer
        self.version = self._version

    def _number(self, model: str) -> int:
        return sum(request.model == model for request in self.requests)

    def restart(self, *, swaps: bool, wrong: set[str] = frozenset()) -> None:
        self.requests.clear()
        self.swaps, self.wrong = swaps, set(wrong)

    def _version(self, request, number) -> str:
        return OTHER if self.swaps and self._number(request.model) >= 50 else f"{request.model}-001"

    def _answer(self, request):
        if request.model == JUDGE:
            return says(VALID)
        is_wrong = request.said.split()[0] in self.wrong or self._version(request, 0) == OTHER
        return says("no" if is_wrong else f"Hello, {request.said}")


@pytest.fixture
def gemini(monkeypatch):
    with Swapping() as server:
        server.use(monkeypatch)
        yield server


@pytest.fixture
def agent(write_agent):
    folder = write_agent(AGENT)
    cases = [
        make_case(
            name,
            *(
                make_turn(f"{name} {word}", f"Hello, {name} {word}", intermediate_data={})
                for word in ("Ann", "Bob")
            ),
        )
        for name in CASES
    ]
    write_eval_set(folder, "greetings", *cases)
    write_test_config(folder, **CRITERIA)
    return folder


def reports(folder, *words):
    """The exit code, and the text of each report."""
    targets = [word for name in FORMATS for word in ("--report", f"{name}={folder / f'out.{name}'}")]
    code = call(*words, *targets)
    return code, {name: (folder / f"out.{name}").read_text() for name in FORMATS}


def plain(text):
    """The text without tags, with one space for each gap."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^<>]*>", "", text)))


def test_another_model_is_named_with_its_place_and_its_differences_are_no_regressions(
    agent, tmp_path, gemini
):
    assert call("run", agent, *ONE_BY_ONE) == 0
    gemini.restart(swaps=True, wrong={"c10"})
    against = ("--baseline", "last", "--fail-on-regression")
    code, written = reports(tmp_path, "run", agent, *ONE_BY_ONE, *against)
    assert code == 1
    for name, text in written.items():
        for note in (AGENT_NOTE, JUDGE_NOTE):
            assert plain(text).count(note) == 1, (name, note)
        words = f"{ASKED} (agent): {SAME} → {OTHER}"
        assert name == "json" or words in plain(text), name
    report = json.loads(written["json"])
    compared = report["comparison"]
    regressions = [case["eval_id"] for case in compared["cases"] if case["regression"]]
    excused = [case["eval_id"] for case in compared["cases"] if case.get("served")]
    assert (regressions, excused) == (["c10"], BEHIND)
    assert (compared["regressions"], compared["other_model_served"]) == (1, 7)
    first = report["cases"][24]["repeats"][0]
    assert [(one["payer"], one["version"], one["turn"]) for one in first["served"]] == [
        ("agent", SAME, 0), ("judge", f"{JUDGE}-001", 0), ("agent", OTHER, 1), ("judge", OTHER, 1),
    ]  # fmt: skip
    (judged,) = (metric for metric in first["metrics"] if "judge" in metric)
    votes = [turn["judgements"][0]["votes"][0]["version"] for turn in judged["per_turn"]]
    assert votes == judged["judge"]["versions"] == [f"{JUDGE}-001", OTHER]


def test_the_gate_passes_where_all_that_differs_is_of_another_model(agent, gemini, capsys):
    assert call("run", agent, *ONE_BY_ONE) == 0
    gemini.restart(swaps=True)
    assert call("run", agent, *ONE_BY_ONE, "--baseline", "last", "--fail-on-regression") == 0
    excused = "other model served, not called regressions: c25, c26, c27 and 4 more"
    assert excused in plain(capsys.readouterr().out)


def test_without_live_calls_nothing_is_told_of_the_model_of_today(agent, gemini, capsys):
    gemini.restart(swaps=True)
    assert call("run", agent, *ONE_BY_ONE, "--record", "record") == 1
    assert plain(capsys.readouterr().out).count("was served by") == 2
    assert call("run", agent, "--record", "replay") == 1
    assert "served by" not in capsys.readouterr().out


def test_a_model_that_names_no_version_stays_unknown(agent, tmp_path, gemini):
    gemini.version = lambda request, number: ""
    assert call("run", agent, *ONE_BY_ONE) == 0
    gemini.restart(swaps=False, wrong={"c10"})
    gemini.version = lambda request, number: OTHER
    code, written = reports(tmp_path, "run", agent, *ONE_BY_ONE, "--baseline", "last", "--fail-on-regression")
    compared = json.loads(written["json"])["comparison"]
    assert (code, compared["regressions"], compared["other_model_served"]) == (1, 1, 0)
    gemini.version = lambda request, number: ""
    _, written = reports(tmp_path, "run", agent, *ONE_BY_ONE)
    assert all("served" not in text for name, text in written.items() if name != "html")
    assert all(
        "versions" not in case and "served" not in case["repeats"][0]
        for case in json.loads(written["json"])["cases"]
    )


def test_new_answers_of_another_version_than_the_recorded_ones_are_told_once(agent, gemini, capsys):
    assert call("run", agent, "greetings:c01,c02", "--record", "auto") == 0
    (file,) = (agent / "recordings").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    calls = [line for line in lines if line["kind"] == "model"]
    assert {line["served"] for line in calls} == {SAME, f"{JUDGE}-001"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", line["recorded"]) for line in calls)
    gemini.version = lambda request, number: OTHER
    capsys.readouterr()
    assert call("run", agent, "greetings:c01,c02,c03,c04", "--record", "auto") == 0
    out = plain(capsys.readouterr().out)
    for model in (ASKED, JUDGE):
        day = calls[0]["recorded"]
        assert out.count(f"has answers of {model} by {model}-001 ({day}), new ones are by {OTHER}") == 1
    assert call("run", agent, "greetings:c01,c02", "--record", "auto") == 0
    assert "new ones" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["console", "json", "csv", "junit", "markdown", "html"])
def test_every_report_names_the_model_that_plays_the_user(tmp_path, kind):
    folder = tmp_path / "desk"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".evaltui"))
    report = tmp_path / "report"
    call("run", folder, "desk:reader_with_card", "--report", f"{kind}={report}")
    assert "scripted_people:reader" in unescape(report.read_text(encoding="utf-8"))
