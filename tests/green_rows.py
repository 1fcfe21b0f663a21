"""Every way in which something that is asked for may go unjudged: none of it may be taken for a pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stored_runs import FOREIGN

# Answers "right", or as the message says.
AGENT = """
    import asyncio, os

    async def root_agent(message, session):
        if message == "raise":
            raise RuntimeError("no")
        if message == "sleep":
            await asyncio.sleep(60)
        if message == "exit":
            os._exit(0)
        return "wrong" if message == "fail" else "right"
"""
METRICS = """
    def none(actual, expected, criterion): return None
    def text(actual, expected, criterion): return "1.0"
    def nan(actual, expected, criterion): return float("nan")
    def infinite(actual, expected, criterion): return float("inf")
    def outside(actual, expected, criterion): return 7.0
    def raises(actual, expected, criterion): raise ValueError("no")
    def good(actual, expected, criterion): return 1.0
"""
JUDGES = """
    VALID = '{"is_the_agent_response_valid": "valid"}'

    def good(prompt, *config): return VALID
    def mute(prompt, *config): return ""
    def vague(prompt, *config): return "It seems to be fine, yes, it is good."
    def other(prompt, *config): return 5
    def angry(prompt, *config): raise RuntimeError("quota")
    QUOTED = '{"reasoning": "It says ' + VALID + '.", "is_the_agent_response_valid": '
    def quotes(prompt, *config): return QUOTED + '"invalid"}'
    def breaks_off(prompt, *config): return QUOTED + '"val'
    def twice(prompt, *config): return VALID.replace('"valid"', '"invalid"')[:-1] + ', ' + VALID[1:]
    def contradicts(prompt, *config): return VALID + ' or ' + VALID.replace('"valid"', '"invalid"')
"""
MATCH = {"response_match_score": 0.8}


def case(eval_id: str = "one", said: str = "hi", answer: str | None = "right", **more: Any) -> dict[str, Any]:
    turn: dict[str, Any] = {"user_content": {"parts": [{"text": said}]}}
    if answer is not None:
        turn["final_response"] = {"parts": [{"text": answer}]}
    return {"eval_id": eval_id, "conversation": [turn], **more}


def own(function: str, threshold: Any = 0.5, **more: Any) -> dict[str, Any]:
    criterion = {"function": f"my_agent.metrics.{function}", "threshold": threshold, **more}
    return {"criteria": MATCH, "evaltui": {"criteria": {"mine": criterion}}}


def judged(function: str) -> dict[str, Any]:
    options = {"judge_model": f"my_agent.judges:{function}", "num_samples": 1}
    return {"criteria": {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": options}}}


def marked(mode: str, **criteria: float) -> dict[str, Any]:
    turns = [{"set": "basics", "case": "one", "turn": 0, "mode": mode}]
    return {"criteria": criteria, "evaltui": {"turns": turns}}


@dataclass(frozen=True)
class Row:
    """An agent's set, its config (as JSON text where that is the point) and how it is run."""

    config: Any = field(default_factory=lambda: {"criteria": MATCH})
    cases: Any = field(default_factory=lambda: [case()])
    words: tuple[str, ...] = ()
    code: int | tuple[int, ...] = (2, 3)
    before: Callable[[Path], None] = lambda agent: None

    def write(self, agent: Path) -> None:
        data = {"eval_set_id": "basics", "eval_cases": self.cases}
        (agent / "basics.evalset.json").write_text(json.dumps(data))
        text = self.config if isinstance(self.config, str) else json.dumps(self.config)
        (agent / "test_config.json").write_text(text)
        self.before(agent)


def twin(agent: Path) -> None:
    data = {"eval_set_id": "basics", "eval_cases": [case(said="fail")]}
    (agent / "a.evalset.json").write_text(json.dumps(data))


def last_run(text: bytes) -> Callable[[Path], None]:
    """A file of this text as the last run."""

    def write(agent: Path) -> None:
        folder = agent / ".evaltui" / "runs"
        folder.mkdir(parents=True)
        (folder / "20300101T000000.000Z-abcdef.sqlite").write_bytes(text)

    return write


def responding() -> dict[str, Any]:
    """A case in which the user responds to a call that was never made."""
    one = case()
    response = {"function_response": {"id": "1", "name": "nosuch", "response": {"ok": True}}}
    one["conversation"].append(one["conversation"][0] | {"user_content": {"parts": [response]}})
    return one


def scripted(agent: Path) -> None:
    (agent / "agent.py").write_text(
        "from evaltui import Agent, Rule, ScriptedModel\n"
        'root_agent = Agent(name="a", model=ScriptedModel([Rule(user=".*", reply="right")]))\n'
    )


def config_above(agent: Path) -> None:
    """The sets are in the tests of a project, their config above them."""
    (agent / "test_config.json").unlink()
    (agent.parent / "pyproject.toml").touch()
    sets = agent.parent / "tests" / "eval" / "evalsets"
    sets.mkdir(parents=True)
    (agent / "basics.evalset.json").rename(sets / "basics.evalset.json")
    (sets.parent / "eval_config.json").write_text('{"criteria": {"nosuch": 0.5}}')


def two_configs(agent: Path) -> None:
    (agent / "test_config.json").rename(agent / "a_config.json")
    (agent / "b_config.json").write_text((agent / "a_config.json").read_text())


RUNS = {"--resume": ("--resume", "last"), "--failed": ("--failed",)}
RUNS["--baseline"] = ("--baseline", "last", "--fail-on-regression")

ROWS: dict[str, Row] = {
    # What is asked for
    "unknown metric": Row({"criteria": MATCH | {"my_metric": 0.5}}),
    "misspelt metric": Row({"criteria": {"response_match_scor": 0.5}}),
    "unknown and optional": Row({"criteria": MATCH | {"nosuch": 1}, "evaltui": {"optional": ["nosuch"]}}),
    "all metrics optional": Row({"criteria": {"safety_v1": 0.5}, "evaltui": {"optional": ["safety_v1"]}}),
    "misspelt criteria": Row({"criterai": MATCH}),
    "no metric": Row({"criteria": {}}),
    "only informational": Row({"criteria": {"token_usage_v1": 5}}),
    "key given twice": Row('{"criteria": {"safety_v1": 1, "safety_v1": 0}}', code=2),
    "block given twice": Row('{"criteria": {"nosuch": 1}, "criteria": {"safety_v1": 0.5}}', code=2),
    **{
        f"threshold {text}": Row(f'{{"criteria": {{"response_match_score": {text}}}}}', code=2)
        for text in ("true", "false", "-1", "80", "NaN", "Infinity", "-Infinity", '"x"', "null", "[]")
    },
    "threshold of an own metric": Row(own("good", -1), code=2),
    "not JSON": Row("{", code=2),
    "not an object": Row("[]", code=2),
    "unknown metric in a config above": Row(before=lambda agent: config_above(agent)),
    "not one config beside it": Row(before=lambda agent: two_configs(agent), code=2),
    "no function": Row(own("nosuch"), code=2),
    "zero repeats": Row({"criteria": MATCH, "evaltui": {"repeats": {"runs": 0}}}, code=2),
    "passes never": Row({"criteria": MATCH, "evaltui": {"repeats": {"pass_if": 0}}}, code=2),
    "pass_if NaN": Row('{"criteria": {}, "evaltui": {"repeats": {"pass_if": NaN}}}', code=2),
    "--runs 0": Row(words=("--runs", "0"), code=2),
    "expected call, rule for another tool": Row(
        {
            "criteria": {"tool_trajectory_avg_score": 1.0},
            "evaltui": {"rules": [{"tool": "nosuch", "arg": "x", "match": "ignore"}]},
        },
        [
            case("calls")
            | {
                "conversation": [
                    case()["conversation"][0]
                    | {"intermediate_data": {"tool_uses": [{"name": "ring", "args": {"x": 1}}]}}
                ]
            }
        ],
        code=1,
    ),
    "rule of no kind": Row({"evaltui": {"rules": [{"tool": "t", "match": "all"}]}}, code=2),
    # What it is asked of
    "ids given twice": Row(cases=[case(said="fail"), case()], code=2),
    "empty set": Row(cases=[], code=2),
    "cases of another kind": Row(cases={"one": case()}, code=2),
    "case of another kind": Row(cases=["one"], code=2),
    "empty conversation": Row(cases=[{"eval_id": "one", "conversation": []}]),
    "nothing expected": Row(cases=[case(answer=None)], code=(1, 3)),
    "unknown role": Row(cases=[case() | {"conversation": [
        case()["conversation"][0] | {"final_response": {"role": "bot", "parts": [{"text": "right"}]}}
    ]}]),
    "all turns context": Row(marked("context", **MATCH)),
    "all turns skip": Row(marked("skip", tool_trajectory_avg_score=1.0)),
    "no such set": Row(words=("nosuch",), code=2),
    "no such case": Row(words=("basics:nosuch",), code=2),
    "no case named": Row(words=("basics:",), code=2),
    "twin": Row(before=twin, code=1),
    # What comes of it
    "raises": Row(cases=[case(said="raise")], code=3),
    "time-out": Row(cases=[case(said="sleep")], words=("--timeout", "0.2"), code=3),
    "process ends": Row(cases=[case(said="exit")], code=3),
    **{
        f"judge: {name}": Row(judged(name), code=3)
        for name in ("mute", "vague", "other", "angry", "contradicts", "breaks_off", "twice")
    },
    "judge: nosuch": Row(judged("nosuch"), code=2),
    "judge: quotes": Row(judged("quotes"), code=(1, 3)),
    "response to a call that does not wait": Row(
        cases=[responding()], before=lambda agent: scripted(agent), code=3
    ),
    "nothing recorded": Row(words=("--record", "replay"), before=lambda agent: gemini(agent), code=3),
    # Which run it is held against
    **{
        f"{name} of a run that is {kind}": Row(words=words, before=last_run(text), code=2)
        for name, words in RUNS.items()
        for kind, text in FOREIGN.items()
    },
}  # fmt: skip


def gemini(agent: Path) -> None:
    (agent / "agent.py").write_text(
        'from evaltui import Agent\nroot_agent = Agent(name="a", model="gemini-x")\n'
    )
