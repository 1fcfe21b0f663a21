"""Judges in real child processes, asked through google-genai at a Gemini API on this machine."""

from __future__ import annotations

import asyncio
import json

import pytest
from gemini_server import KEY, Answer, Hold, chunk, drops, fails, malformed, says
from host_processes import hosts
from recorded_runs import Ran, recorded_file, turn, write_set

from evaltui import EvalConfig, EvalSet, Status, evaluate
from evaltui.runner.plan import RepeatDone

# Answers by rules, which are neither recorded nor counted.
AGENT = """
    from evaltui import Agent, Rule, ScriptedModel

    root_agent = Agent(name="clerk", model=ScriptedModel([Rule(user="", reply="It is done.")]))
"""
FUNCTION = """
    def root_agent(message, session):
        return "It is done."
"""
METRIC = "final_response_match_v2"
VALID = says('{"reasoning": "the same", "is_the_agent_response_valid": "valid"}')
INVALID = says('{"reasoning": "not the same", "is_the_agent_response_valid": "invalid"}')


def config(samples=3, limit=1, model="gemini-judge", threshold=0.5, judge_config=None, **criteria):
    options = {"judge_model": model, "num_samples": samples, "parallelism_limit": limit}
    if judge_config is not None:
        options["judge_model_config"] = judge_config
    criterion = {"threshold": threshold, "judge_model_options": options}
    return EvalConfig.model_validate({"criteria": {METRIC: criterion} | criteria})


class Judged(Ran):
    def take(self, update):
        super().take(update)
        if isinstance(update, RepeatDone):
            self.calls.on_result(update.result)

    @property
    def metric(self):
        (metric,) = (one for one in self.cases[0].metrics if one.name == METRIC)
        return metric

    @property
    def votes(self):
        (judgement,) = self.metric.per_invocation[0].judgements
        return [vote.score for vote in judgement.votes]


async def run(path, record="off", with_config=None, **more):
    ran = Judged()
    settings = {"workers": 1, "record": record, "on_update": ran.take} | more
    result = await evaluate(path.parent, path, with_config or config(), **settings)
    ran.cases = list(result.cases)
    return ran


@pytest.fixture
def agent(write_agent):
    return write_agent(AGENT)


@pytest.fixture
def path(agent):
    return write_set(agent, {"one": [turn("Do it", "It was done.")]})


async def test_the_majority_decides_and_the_config_of_the_judge_is_sent(path, gemini):
    gemini.script(VALID, INVALID, VALID)
    ran = await run(path, with_config=config(judge_config={"temperature": 0.5}))
    assert ran.statuses == ["PASSED"]
    assert ran.votes == [1.0, 0.0, 1.0]
    assert (ran.metric.judge.asked, ran.metric.judge.answered, ran.metric.judge.live) == (3, 3, 3)
    assert {request.model for request in gemini.requests} == {"gemini-judge"}
    assert {request.body["generationConfig"]["temperature"] for request in gemini.requests} == {0.5}
    assert all("It is done." in request.said for request in gemini.requests)
    assert ran.calls.live == 0
    assert str(ran.calls) == "0 live model calls, 0 replayed, 3 live judge calls, 0 replayed"


async def test_one_failed_sample_does_not_void_the_turn(path, gemini):
    gemini.script(VALID, *[fails(500, retry_delay="0s")] * 5, VALID)
    ran = await run(path)
    assert ran.statuses == ["PASSED"]
    assert ran.votes == [1.0, None, 1.0]
    problem = ran.metric.per_invocation[0].judgements[0].votes[1].problem
    assert "model 'gemini-judge' gave no response (tried 5 times): 500 INTERNAL" in problem
    assert (ran.metric.judge.asked, ran.metric.judge.answered) == (3, 2)
    assert "2 of 3 votes counted" in ran.metric.per_invocation[0].reason


async def test_what_may_pass_is_asked_again(path, gemini):
    # The drop and the cut-off answer are waited for as long as users wait.
    gemini.script(fails(429, retry_delay="0s"), VALID, drops(), VALID, malformed(), VALID)
    ran = await run(path, with_config=config(limit=3))
    assert ran.votes == [1.0] * 3
    assert len(gemini.requests) == 6


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fails(400, "no such thing"), "400 INVALID_ARGUMENT: no such thing"),
        (says("I would rather not say."), "I would rather not say"),
    ],
    ids=["refused", "cannot be read"],
)
async def test_without_a_verdict_it_is_an_error_with_what_was_said(path, gemini, answer, reason):
    gemini.respond = lambda request: answer
    ran = await run(path)
    assert ran.statuses == ["ERROR"]
    assert ran.metric.status is Status.ERROR
    assert reason in ran.metric.reason


async def test_a_run_that_is_cancelled_cancels_what_is_being_asked(agent, gemini):
    hold = Hold()
    gemini.respond = lambda request: Answer([hold, chunk({"text": "late"})])
    path = write_set(agent, {"one": [turn("Do it", "1")], "two": [turn("Do it", "2")]})
    task = asyncio.create_task(run(path))
    await asyncio.to_thread(hold.reached.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hosts() == []
    hold.release()


async def test_while_one_case_is_judged_the_next_one_is_run(agent, gemini):
    hold = Hold()
    seen = asyncio.Event()

    class Watched(Judged):
        def take(self, update):
            super().take(update)
            if len(self.of_kind("user")) == 2:
                seen.set()

    gemini.respond = lambda request: VALID.after(hold)
    path = write_set(agent, {"one": [turn("Do it", "1")], "two": [turn("Do it", "2")]})
    ran = Watched()
    task = asyncio.create_task(
        evaluate(agent, path, config(samples=1), parallel=1, workers=1, on_update=ran.take)
    )
    await asyncio.wait_for(seen.wait(), 30)
    assert not task.done()
    hold.release()
    assert (await task).status is Status.PASSED


async def test_a_judge_that_takes_too_long_has_failed(path, gemini):
    hold = Hold()
    gemini.respond = lambda request: VALID.after(hold) if len(gemini.requests) == 1 else VALID
    ran = await run(path, timeout=5.0)
    hold.release()
    assert ran.votes == [None, 1.0, 1.0]
    assert "no response within 5 s" in ran.metric.per_invocation[0].judgements[0].votes[0].problem


JUDGES = {
    "plain": ("""print("judging"); return '{"is_the_agent_response_valid": "valid"}'""", Status.PASSED, ""),
    "waiting": ("""return '{"is_the_agent_response_valid": "invalid"}'""", Status.FAILED, "does not match"),
    "raises": ("raise RuntimeError('judge 500')", Status.ERROR, "in raises: RuntimeError: judge 500"),
    "wrong_type": ("return {}", Status.ERROR, "returned a dict; it must return its answer as a str"),
    "absent": ("", Status.ERROR, "has no function absent"),
    "dies": ("os._exit(3)", Status.ERROR, "exit code 3"),
    "hangs": ("time.sleep(60)", Status.ERROR, "no response within 3 s"),
}
SOURCE = "import os, time\n" + "\n".join(
    f"{'async ' * (name == 'waiting')}def {name}(prompt):\n    {body}\n"
    for name, (body, *_) in JUDGES.items()
    if body
)


@pytest.mark.parametrize("name", JUDGES)
async def test_a_function_may_be_the_judge(write_agent, name):
    _, status, said = JUDGES[name]
    agent = write_agent(FUNCTION, judges=SOURCE)
    path = write_set(agent, {"one": [turn("Do it", "It was done.")]})
    package = "agent" if name == "waiting" else "my_agent"
    wanted = config(samples=1, model=f"{package}.judges:{name}", response_match_score=0.1)
    # Only for one that hangs it is short: processes take their time to start where much is going on.
    ran = await run(path, with_config=wanted, timeout=3.0 if name == "hangs" else 60.0)
    assert ran.metric.status is status
    assert said in ran.metric.reason
    other = next(one for one in ran.cases[0].metrics if one.name == "response_match_score")
    assert other.status is Status.PASSED
    if name == "raises":
        assert ran.metric.error.type == "RuntimeError"
        assert "in raises" in ran.metric.error.traceback
    if name == "plain":
        assert "judging" in [event.data["text"] for event in ran.of_kind("console")]


# Recorded and replayed


def entries(path):
    lines = [json.loads(line) for line in recorded_file(path).read_text().splitlines()]
    return [line for line in lines if line["kind"] == "model"]


async def test_what_was_recorded_is_replayed_in_order_and_nobody_is_asked(path, gemini, monkeypatch):
    gemini.script(VALID, INVALID, INVALID)
    first = await run(path, "record", config(limit=3))
    text = recorded_file(path).read_text()
    assert [entry["agent"] for entry in entries(path)] == [f"judge of {METRIC}"] * 3
    assert str(first.calls) == "0 live model calls, 0 replayed, 3 live judge calls, 0 replayed"

    monkeypatch.delenv("GOOGLE_API_KEY")
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL")
    started = []
    monkeypatch.setattr(
        "evaltui.runner.scoring.Host",
        lambda *_, **__: started.append(1) or pytest.fail("a judge was asked"),
    )
    for mode in ("replay", "auto"):
        played = await run(path, mode, config(limit=3))
        assert played.votes == first.votes
        assert played.statuses == first.statuses == ["FAILED"]
        assert (played.metric.judge.replayed, played.metric.judge.live) == (3, 0)
        assert str(played.calls) == "0 live model calls, 0 replayed, 0 live judge calls, 3 replayed"
    missed = await run(path, "replay", config(samples=4, limit=3))
    assert (missed.statuses, missed.metric.error.type) == (["ERROR"], "NotRecordedError")
    assert started == []
    assert len(gemini.requests) == 3
    assert recorded_file(path).read_text() == text


GEMINI_AGENT = """
    from evaltui import Agent

    root_agent = Agent(name="clerk", model="gemini-test", instruction="Work.")
"""


JUDGE = """\
from .words import WORD

def ask(prompt):
    return '{"is_the_agent_response_valid": "%s"}' % WORD
"""


async def test_a_judge_whose_code_changed_is_asked_again(agent):
    (agent / "judges.py").write_text(JUDGE)
    path = write_set(agent, {"one": [turn("Do it", "It was done.")]})
    wanted = config(samples=1, model="my_agent.judges:ask")
    for word, status, live in (("valid", "PASSED", 1), ("valid", "PASSED", 0), ("invalid", "FAILED", 1)):
        (agent / "words.py").write_text(f"WORD = {word!r}\n")
        ran = await run(path, "auto", wanted)
        assert (ran.statuses, ran.calls.judge_live) == ([status], live)
    (agent / "words.py").write_text("WORD = 'valid'\n")
    ran = await run(path, "replay", wanted)
    assert ran.statuses == ["ERROR"]
    assert "the code of the function changed" in ran.metric.reason


READING_JUDGE = """\
from pathlib import Path

HERE = Path(__file__).parent
SEEN = HERE / "seen.json"

def ask(prompt):
    with (HERE / "asked.txt").open("a") as file:
        file.write("asked")
    SEEN.write_text(prompt)
    (HERE / "key.json").exists() and (HERE / ".env").exists()
    return '{"is_the_agent_response_valid": "%s"}' % (FILE).read_text()
"""


@pytest.mark.parametrize(
    ("path_in_code", "file"),
    [
        ("HERE / 'prompts' / 'judge.md'", "prompts/judge.md"),
        ("HERE / 'judge.txt'", "judge.txt"),
        ("HERE / 'prompts/grading.txt'", "prompts/grading.txt"),
        ("HERE / 'rubric.yaml'", "rubric.yaml"),
        ("HERE.parent / 'prompts' / 'judge.md'", "../prompts/judge.md"),
        ("HERE.parent / 'shared' / 'texts' / 'rubric'", "../shared/texts/rubric"),
    ],
)
async def test_a_judge_is_asked_again_when_a_text_that_it_names_changed_but_for_no_own_data(
    agent, path_in_code, file
):
    (agent / "judges.py").write_text(READING_JUDGE.replace("FILE", path_in_code))
    (agent / file).parent.mkdir(parents=True, exist_ok=True)
    path = write_set(agent, {"one": [turn("Do it", "It was done.")]})
    for word, status, live in (("valid", "PASSED", 1), ("valid", "PASSED", 0), ("invalid", "FAILED", 1)):
        (agent / file).write_text(word)
        ran = await run(path, "auto", config(samples=1, model="my_agent.judges:ask"))
        assert (ran.statuses, ran.calls.judge_live) == ([status], live)
        # What another machine does not have.
        key = "-----BEGIN PRIVATE KEY-----\\nabcd\\n-----END PRIVATE KEY-----\\n"
        (agent / "key.json").write_text(json.dumps({"private_key": key}) if live else "")
        (agent / ".env").write_text(f"A={live}")


async def test_agent_and_judge_are_in_one_recording_and_a_cancel_loses_neither(write_agent, gemini):
    agent = write_agent(GEMINI_AGENT)
    path = write_set(agent, {"one": [turn("Do it", "It was done.")]})
    hold = Hold()
    gemini.script(says("It is done."), VALID, Answer([hold, chunk({"text": "late"})]))
    task = asyncio.create_task(run(path, "auto"))
    await asyncio.to_thread(hold.reached.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hold.release()
    assert [entry.get("agent") for entry in entries(path)] == ["clerk", f"judge of {METRIC}"]

    gemini.script(VALID, INVALID)
    ran = await run(path, "auto")
    assert (ran.calls.live, ran.calls.replayed) == (0, 1)
    assert (ran.calls.judge_live, ran.calls.judge_replayed) == (2, 1)
    # An agent that fails leaves what judges said of its answers.
    gemini.script(fails(400, "no such thing"))
    assert (await run(path, "record")).statuses == ["ERROR"]
    played = await run(path, "replay")
    assert played.statuses == ["PASSED"]
    assert played.votes == [1.0, 1.0, 0.0]
    assert gemini.unused == 0


async def test_keys_of_the_agents_environment_file_do_not_enter_a_recording(agent, gemini, monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY")
    (agent / ".env").write_text(f"GOOGLE_API_KEY={KEY}\nSHOP_TOKEN=abcdefgh1234\n")
    path = write_set(agent, {"one": [turn(f"My token is abcdefgh1234 and {KEY}", "Thanks.")]})
    gemini.respond = lambda request: VALID
    ran = await run(path, "record")
    assert ran.statuses == ["PASSED"]
    assert "abcdefgh1234" in gemini.requests[0].said
    text = recorded_file(path).read_text()
    assert "abcdefgh1234" not in text
    assert KEY not in text
    assert (await run(path, "replay")).statuses == ["PASSED"]


async def test_without_metrics_that_are_judged_nobody_is_asked(agent, monkeypatch):
    monkeypatch.setattr("evaltui.runner.scoring.Host", lambda *_, **__: pytest.fail("a process was started"))
    eval_set = EvalSet.model_validate(
        {"eval_set_id": "s", "eval_cases": [{"eval_id": "one", "conversation": [turn("a", "It is done.")]}]}
    )
    result = await evaluate(agent, eval_set, EvalConfig(criteria={"response_match_score": 0.9}))
    assert result.status is Status.PASSED
