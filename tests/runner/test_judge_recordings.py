"""What judges are asked, in which order and how many at once, and what of it is recorded and replayed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from evaltui.agents.errors import HostLostError, RequestFailedError
from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError, Question
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.modes import modes_of
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.model.spending import Tokens
from evaltui.project.settings import secrets_of
from evaltui.runner.run_recordings import SetRecordings
from evaltui.runner.verdicts import CaseJudge, Judges

SERVICE = RequestFailedError(ErrorInfo("ModelError", "503 UNAVAILABLE", kind=None))
NO_KEY = RequestFailedError(ErrorInfo("ValueError", "there is no key", kind=None))
TOO_LATE = RequestFailedError(ErrorInfo("TimeoutError", "no response within 300 s", kind=None))
CRASHED = HostLostError(ErrorInfo("AgentProcessError", "exit code 3", kind=None))


class Host:
    """Answers with what is scripted; each question may be held until it is let go."""

    def __init__(self, *answers, held=False):
        self.answers = list(answers)
        self.asked = []
        self.under_way = self.most = 0
        self.gates = []
        self.held = held

    async def answer(self, kind, message):
        prompt, config = message["prompt"], message["config"]
        answer = self.answers.pop(0) if self.answers else pytest.fail("nobody was to be asked")
        self.asked.append((message["judge"], prompt, config))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.held:
                self.gates.append(asyncio.Event())
                await self.gates[-1].wait()
        finally:
            self.under_way -= 1
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer):
            return {"text": answer.text, "cut_off": answer.cut_off, "usages": answer.usages, "version": ""}
        return {"text": answer, "cut_off": "", "usages": (), "version": ""}


def question(prompt="so?", turn=0, metric="m", limit=10, **options):
    return Question(metric, turn, prompt, JudgeModelOptions(parallelism_limit=limit, **options))


class Study:
    """A set whose cases are judged again and again, each time as in a run of its own."""

    def __init__(self, folder):
        self.path = folder / "x.evalset.json"
        self.file = folder / "recordings" / "x.jsonl"
        self.notes = []

    async def judge(self, mode, host, *questions, complete=True, repeat=0):
        """What came of the questions: texts, with `~` before those that were replayed, or errors."""
        recordings = SetRecordings(self.file, self.path, modes_of(mode, None, {}), self.notes.append)
        await recordings.open()
        recorder = recordings.judging("one", repeat, secrets_of(self.path.parent))
        judge = CaseJudge(Judges(host), recorder)
        try:
            came = await asyncio.gather(*map(judge, questions), return_exceptions=True)
        finally:
            recordings.end("one", repeat, complete=complete, judged=judge.finished)
            await recordings.save()
        self.calls = judge.calls
        return [self._shown(one) for one in came]

    def _shown(self, one):
        if isinstance(one, JudgeFailedError):
            return f"{one.error.type}: {one.error.message}" + ("" if one.was_asked else " (unasked)")
        assert isinstance(one, Answer), one
        return ("~" if one.is_replayed else "") + one.text + (f" ({one.cut_off})" if one.cut_off else "")

    @property
    def recorded(self):
        lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [
            (line["agent"], line["turn"], line.get("responses") or line["error"]["message"]) for line in lines
        ]


def said(text):
    return [{"parts": [{"text": text}]}]


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


async def test_equal_questions_have_as_many_recordings_played_in_order(study):
    host = Host("a", "b", Answer("c", cut_off="MAX_TOKENS"))
    assert await study.judge("record", host, *[question()] * 3) == ["a", "b", "c (MAX_TOKENS)"]
    assert [text[0]["parts"] for _, _, text in study.recorded] == [[{"text": text}] for text in "abc"]
    for mode in ("replay", "auto"):
        assert await study.judge(mode, Host(), *[question()] * 3) == ["~a", "~b", "~c (MAX_TOKENS)"]


SCHEMA = {"type": "OBJECT"}


@pytest.mark.parametrize(
    ("model", "config", "is_sent"),
    [
        ("gemini-2.5-flash", None, True),
        ("projects/p/locations/l/publishers/google/models/gemini-3-pro", {"temperature": 0.5}, True),
        ("gemma-3-27b-it", None, False),
        ("my.module:judge", None, False),
        ("gemini-2.5-flash", {"response_mime_type": "text/plain"}, False),
        ("gemini-2.5-flash", {"tools": [{"google_search": {}}]}, False),
    ],
)
async def test_gemini_is_asked_for_the_form_of_the_answer_and_a_recording_is_the_same_without(
    study, model, config, is_sent
):
    options = {"judge_model": model, "judge_model_config": config}
    host = Host("a")
    await study.judge("record", host, replace(question(**options), schema=SCHEMA))
    sent = host.asked[0][2] or {}
    assert (sent.get("response_schema") == SCHEMA) is is_sent
    assert (sent.get("response_mime_type") == "application/json") is is_sent
    assert sent.get("temperature") == (config or {}).get("temperature")
    assert await study.judge("replay", Host(), question(**options)) == ["~a"]


async def test_in_whatever_order_answers_come_the_file_is_the_same(study):
    asked = [question("p", turn) for turn in (0, 0, 1)] + [question("q", 0, "n"), question("q", 0, "n")]
    await study.judge("record", Host(*"abcde"), *asked)
    before = study.file.stat()
    host = Host(*"abcde", held=True)
    task = asyncio.create_task(study.judge("record", host, *asked))
    while len(host.gates) < 5:
        await asyncio.sleep(0)
    for gate in (host.gates[4], host.gates[1], host.gates[0], host.gates[3], host.gates[2]):
        gate.set()
        await asyncio.sleep(0)
    assert await task == list("abcde")
    assert study.file.stat().st_mtime_ns == before.st_mtime_ns
    assert [(agent, turn) for agent, turn, _ in study.recorded] == [
        ("judge of m", 0),
        ("judge of m", 0),
        ("judge of m", 1),
        ("judge of n", 0),
        ("judge of n", 0),
    ]


async def test_what_is_missing_is_asked_in_auto_and_named_in_a_replay(study):
    await study.judge("auto", Host("a"), question())
    missing = await study.judge("replay", Host(), question(), question(), question("other"))
    assert missing[0] == "~a"
    assert missing[1] == (
        "NotRecordedError: the request of the judge of m in turn 1 is not in recordings/x.jsonl: "
        "recorded once, now requested once more. --record auto requests the missing ones (unasked)"
    )
    assert 'content 1 is "user: other", was "user: so?"' in missing[2]
    assert await study.judge("auto", Host("b"), question(), question()) == ["~a", "b"]
    assert await study.judge("replay", Host(), question(), question()) == ["~a", "~b"]


@pytest.mark.parametrize("changed", [{"judge_model": "other"}, {"judge_model_config": {"temperature": 1}}])
async def test_another_model_or_config_is_another_question(study, changed):
    await study.judge("record", Host("a"), question())
    (missing,) = await study.judge("replay", Host(), question(**changed))
    assert missing.startswith("NotRecordedError")
    host = Host("b")
    await study.judge("auto", host, question(**changed))
    assert [text for _, _, text in study.recorded] == [said("b")]
    assert await study.judge("replay", Host(), question(**changed)) == ["~b"]


async def test_a_refusal_is_replayed_and_asked_again_in_auto(study):
    first = await study.judge("record", Host("a", SERVICE), question(), question())
    assert first == ["a", "ModelError: 503 UNAVAILABLE"]
    again = await study.judge("replay", Host(), question(), question())
    assert again == ["~a", "ModelError: 503 UNAVAILABLE (unasked)"]
    assert await study.judge("auto", Host("b"), question(), question()) == ["~a", "b"]
    assert [text for _, _, text in study.recorded] == [said("a"), said("b")]


async def test_a_failure_never_takes_the_place_of_an_answer(study):
    await study.judge("record", Host("a", "b"), question(), question())
    text = study.file.read_text()
    for failure in (SERVICE, NO_KEY, TOO_LATE, CRASHED):
        await study.judge("record", Host("a", failure), question(), question())
        assert study.file.read_text() == text


@pytest.mark.parametrize("failure", [NO_KEY, TOO_LATE, CRASHED])
async def test_what_is_no_answer_of_a_judge_is_not_recorded(study, failure):
    (came,) = await study.judge("record", Host(failure), question())
    assert came == f"{failure.error.type}: {failure.error.message}"
    assert not study.file.exists()


async def test_what_is_not_asked_about_any_more_goes_and_what_other_metrics_have_stays(study):
    await study.judge("record", Host("a", "b", "c"), question(), question("q"), question("r", metric="n"))
    await study.judge("record", Host("d"), question("new"))
    assert study.recorded == [("judge of m", 0, said("d")), ("judge of n", 0, said("c"))]
    # An agent that failed, or no judge in the config: nothing is asked.
    text = study.file.read_text()
    await study.judge("record", Host())
    await study.judge("record", Host(), complete=False)
    assert study.file.read_text() == text


async def test_of_a_cancelled_judging_what_was_answered_stays(study):
    await study.judge("record", Host("a", "b"), question("p"), question("q"))
    host = Host("new", "late", held=True)
    task = asyncio.create_task(study.judge("record", host, question("p"), question("q")))
    while len(host.gates) < 2:
        await asyncio.sleep(0)
    host.gates[0].set()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(text[0]["parts"][0]["text"] for _, _, text in study.recorded) == ["b", "new"]


async def test_repeats_of_a_case_have_recordings_of_their_own(study):
    await study.judge("record", Host("a"), question())
    await study.judge("record", Host("b"), question(), repeat=1)
    assert await study.judge("replay", Host(), question(), repeat=1) == ["~b"]
    assert await study.judge("replay", Host(), question()) == ["~a"]


async def test_off_records_nothing_and_without_recordings_everything_is_asked(study, tmp_path):
    host = Host("a", "b")
    judge = CaseJudge(Judges(host), None)
    options = {"judge_model": "mine:ask", "judge_model_config": {"temperature": 0.5, "top_k": 3}}
    assert await judge(question(**options)) == Answer("a")
    assert host.asked == [("mine:ask", "so?", {"temperature": 0.5, "top_k": 3.0})]
    assert await judge(question()) == Answer("b")
    assert host.asked[1] == ("gemini-2.5-flash", "so?", None)


async def test_of_one_metric_so_many_are_under_way_as_it_allows_over_all_cases(tmp_path):
    host = Host(*map(str, range(12)), held=True)
    judges = Judges(host)
    cases = [CaseJudge(judges, None) for _ in range(3)]
    asked = [question(str(n), limit=2) for n in range(3)]
    tasks = [asyncio.create_task(case(one)) for case in cases for one in asked]
    other = asyncio.create_task(cases[0](question("other", metric="n", limit=1)))
    while not all(task.done() for task in [*tasks, other]):
        for gate in host.gates:
            gate.set()
        await asyncio.sleep(0)
    assert host.most == 3
    order = [prompt for _, prompt, _ in host.asked if prompt != "other"]
    assert order == ["0", "1", "2"] * 3


async def test_what_judges_spend_is_metered_and_recorded(study):
    usage = {"prompt_token_count": 9, "candidates_token_count": 4}
    for mode, host in (("record", Host(Answer("a", usages=(usage, usage)))), ("replay", Host())):
        await study.judge(mode, host, question(judge_model="m"))
        [call] = study.calls
        attempts = 1 if mode == "replay" else 2
        assert (call.payer, call.model, call.is_replayed) == ("judge", "m", mode == "replay")
        assert call.tokens == (Tokens(9, None, None, 4),) * attempts


async def test_a_question_without_answer_costs_what_its_attempts_tell(study):
    lost = RequestFailedError(ErrorInfo("ModelError", "no text", kind=None))
    lost.usages = [{"prompt_token_count": 9}]
    host = Host(lost, SERVICE)
    judge = CaseJudge(Judges(host), None)
    for _ in range(2):
        with pytest.raises(JudgeFailedError):
            await judge(question())
    assert [call.tokens for call in judge.calls] == [(Tokens(9, None, None, 0),), ()]
