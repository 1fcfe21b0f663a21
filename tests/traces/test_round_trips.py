"""A random run, exported: scored and imported again it is what it was, in all places that tell of it."""

import json
import random
from pathlib import Path
from xml.etree import ElementTree

from tests.commands.command_line import call
from tests.eval_data import make_case, write_eval_set, write_test_config
from tests.traces.test_export_command import verdicts

AGENT = """
    import json, pathlib
    from evaltui.events import text, tool_call, tool_result, transfer

    TURNS = json.loads((pathlib.Path(__file__).parent / "turns.json").read_text())

    def root_agent(message, session):
        for kind, *values in TURNS[message]:
            if kind == "raise":
                raise ValueError(values[0])
            if kind == "state":
                session.state.update(values[0])
            elif kind == "text":
                yield text(values[0], agent=values[1])
            elif kind == "transfer":
                yield transfer(values[0])
            elif kind == "call":
                yield tool_call(*values[:2], id=values[2])
            else:
                yield tool_result(*values[:2], id=values[2])
"""
WORDS = [
    "Rome",
    "ok",
    "",
    " ",
    "\n",
    "naïve 🦜",
    "null",
    '{"a": 1}',
    "[]",
    "1",
    "x" * 9_000,
    "</b>",
]
VALUES = [*WORDS, None, True, 0, 1.5, [], {}, ["a", None], {"result": 1}, 2**60]


def acts(rng):
    """The steps of a turn of an agent."""
    names = [(rng.choice(["find", "pay"]), f"c{rng.random()}") for _ in range(rng.randrange(4))]
    calls = [["call", name, {"what": rng.choice(VALUES)}, number] for name, number in names]
    rng.shuffle(names)
    results = [["result", name, rng.choice([*VALUES, {"error": "no"}]), number] for name, number in names]
    pairs = zip(calls, results, strict=True)
    steps = calls + results if rng.random() < 0.5 else [step for pair in pairs for step in pair]
    for _ in range(rng.randrange(3)):
        step = ["state", {rng.choice("ab"): rng.choice(VALUES)}]
        steps.insert(rng.randrange(len(steps) + 1), step)
    if rng.random() < 0.3:
        steps.insert(rng.randrange(len(steps) + 1), ["transfer", "other"])
    steps += [["text", rng.choice(WORDS), rng.choice(["", "other"])] for _ in range(rng.randrange(3))]
    return [*steps, ["raise", "no"]] if rng.random() < 0.1 else steps


def expected(rng, message, steps):
    """A turn that expects what its steps do, or other values in places."""
    uses = [{"name": step[1], "args": step[2]} for step in steps if step[0] == "call"]
    said = [step[1] for step in steps if step[0] == "text"] or [""]
    if rng.random() < 0.3:
        uses = uses[1:] or [{"name": "find", "args": {}}]
    parts = [{"text": message}]
    if rng.random() < 0.2:
        parts.append({"inline_data": {"mime_type": "image/png", "data": "aGk="}})
    turn = {"user_content": {"role": "user", "parts": parts}, "intermediate_data": {"tool_uses": uses}}
    if rng.random() < 0.8:
        text = rng.choice([said[-1], said[-1], "Other."])
        turn["final_response"] = {"role": "model", "parts": [{"text": text}]}
    return turn


def write_random(folder, rng, count):
    turns, cases = {}, []
    for number in range(count):
        conversation, state = [], {}
        for place in range(rng.randrange(1, 4)):
            message = f"Turn {place} of {number}"
            turns[message] = acts(rng)
            for step in turns[message]:
                state |= step[1] if step[0] == "state" else {}
            conversation.append(expected(rng, message, turns[message]))
        more = {}
        if rng.random() < 0.5:
            more["final_session_state"] = state if rng.random() < 0.7 else {"a": "never"}
        if rng.random() < 0.3:
            more["session_input"] = {"app_name": "shop", "user_id": "ann", "state": {"b": rng.choice(VALUES)}}
        cases.append(make_case(f"case_{number}", *conversation, **more))
    (folder / "turns.json").write_text(json.dumps(turns))
    write_eval_set(folder, "shop", *cases)
    criteria = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    write_test_config(folder, criteria=criteria)


def junit(file):
    """The ids of cases that passed by their JUnit report."""
    root = ElementTree.parse(file).getroot()
    return {
        case.get("name").partition("[")[0]
        for case in root.iter("testcase")
        if not {"failure", "error", "skipped"} & {child.tag for child in case}
    }


def passed(outcomes):
    return {name for name, (status, _) in outcomes.items() if status == "PASSED"}


def test_a_random_run_is_the_same_after_its_export(write_agent, monkeypatch, capsys, thorough):
    rng = random.Random(None if thorough else 5)
    folder = write_agent(AGENT, name="shop")
    monkeypatch.chdir(folder)
    for _ in range(8 if thorough else 1):
        Path("again.evalset.json").unlink(missing_ok=True)
        write_random(folder, rng, 40 if thorough else 15)
        call("run", ".", "--report", "json=run.report.json")
        ran = verdicts("run.report.json")
        assert call("export", ".", "--run", "last", "-o", "run.json") == 0
        call("score", "run.json", "--home", ".", "--report", "json=s.json", "--report", "junit=s.xml")
        assert verdicts("s.json") == ran
        assert junit("s.xml") == passed(ran)
        capsys.readouterr()
        assert call("inspect", "run.json", "--format", "json") == 0
        shown = json.loads(capsys.readouterr().out)["conversations"]
        assert {one["case"] for one in shown} == ran.keys()

        held = [one for one in shown if not any(turn["error"] for turn in one["turns"])]
        chosen = [word for one in held for word in ("--conversation", one["id"])]
        assert call("import", "run.json", "--into", "again.evalset.json", *chosen) == 0
        call("run", ".", "again.evalset.json", "--report", "json=again.report.json")
        again = verdicts("again.report.json")
        assert again.keys() == {one["case"] for one in held}
        # An empty response scores 0.
        assert {scores["tool_trajectory_avg_score"][1] for _, scores in again.values()} == {"PASSED"}
