"""`evaltui gaps`: changes of recorded conversations that eval sets do not notice."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import call
from eval_data import make_case, make_turn, new_rule, write_eval_set, write_test_config

from evaltui.runs.run_file import RunFile

SAMPLES = Path(__file__).parents[2] / "sample_agents"
OTHER_TYPES = {int: str, float: str, str: lambda text: [text]}
UNITS = {"°C": "°F", "degrees": "°F", "euros": "dollars"}
WORDS = ("is", "are", "was", "were", "will", "has", "have", "had")
PROMISE = " I have also refunded you 100 dollars."


def gaps(agent, *words):
    out = Path(agent) / "gaps.json"
    code = call("gaps", agent, *words, "--report", f"json={out}")
    return code, json.loads(out.read_text())


# A second, independent reading of the kinds of changes, for the texts and calls of the samples.


def call_changes(calls, tools):
    """The kind and the calls after each change."""
    for place, (name, args) in enumerate(calls):
        before, after = calls[:place], calls[place + 1 :]

        def put(*instead, before=before, after=after):
            return [*before, *instead, *after]

        yield "call dropped", put()
        yield "call repeated", put((name, args), (name, args))
        if len({*tools, name}) > 1 and (name != "transfer_to_agent" or tools):
            yield "another tool", put(("other", args))
        for arg, value in args.items():
            other = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else "other"
            yield "argument changed", put((name, {**args, arg: other}))
            yield "argument of another type", put((name, {**args, arg: OTHER_TYPES[type(value)](value)}))
            yield "argument dropped", put((name, {key: item for key, item in args.items() if key != arg}))
        yield "argument added", put((name, {**args, "extra": "other"}))
        if after and after[0] != (name, args):
            yield "calls swapped", [*before, after[0], (name, args), *after[1:]]


def answer_changes(text, responses):
    yield "answer emptied", ""
    words = text.split()
    if len(words) > 3:
        yield "answer cut", " ".join(words[: len(words) // 2])
    numbers = [match.span() for match in re.finditer(r"(?:(?<=\s)-?|^)\d+(?:\.\d+)?(?=[\s.,]|$)", text)]
    for start, end in numbers:
        start += text[start] == "-"
        whole, dot, rest = text[start:end].partition(".")
        changed = f"{text[:start]}{int(whole) + 1}{dot}{rest}{text[end:]}"
        yield "another number", changed
        if any(
            isinstance(value, int | float)
            and float(text[start:end]) == abs(value)
            and (value < 0) == text[:start].endswith("-")
            for value in responses
        ):
            yield "tool response changed", changed
    for pattern in (r"\d{4}-\d\d-(\d\d)", r"\d\d:(\d\d)"):
        for match in re.finditer(pattern, text):
            start, end = match.span(1)
            yield "another date or time", f"{text[:start]}{int(text[start:end]) + 1:02}{text[end:]}"
    for unit, other in UNITS.items():
        if re.search(rf"\d {unit}", text):
            yield "another unit", text.replace(unit, other)
    if verb := next((word for word in words if word in WORDS), None):
        yield "answer negated", re.sub(rf"\b{verb}\b", f"{verb} not", text, count=1)
    for sentence in re.findall(r"[^.!?:]+", text):
        for name in re.findall(r"(?<=\S )\b[A-Z][\w-]+", sentence):
            yield "another name", text.replace(name, "Avery", 1)
    yield "an invented promise", text + PROMISE


def texts_without(text, responses):
    """The texts without the sentences that say a value of a tool's response."""
    sentences = re.findall(r"\S.*?[.!?](?= |$)", text)
    texts = set()
    for response in responses:
        values = re.findall(r'"?([^"\[\]{},]+)"?(?=[\]},])', json.dumps(response["response"]))
        said = re.compile(
            "|".join(rf"(?<!\w){re.escape(value.strip())}(?!\w)" for value in values), re.IGNORECASE
        )
        rest = [item for item in sentences if not values or not said.search(item)]
        texts |= {" ".join(rest)} - {"", text}
    return texts


def state_changes(expected, actual):
    """The key, and the value after each change of an expected key; None for a dropped one."""
    for key, value in actual.items():
        if key in expected:
            yield key, other_value(value)
            yield key, None


def other_value(value):
    if isinstance(value, dict):
        first, *_ = value
        return {**value, first: other_value(value[first])}
    return value + 1 if isinstance(value, int) else f"{value} other"


def agent_changes(turn, agents):
    """The agent that answered, another one, and whether a call of the turn transfers to the first."""
    events = (turn.get("intermediate_data") or {}).get("invocation_events", [])
    authors = [event["author"] for event in events if event["author"] != "user"]
    others = [agent for agent in agents if agent != authors[-1]] if authors else []
    if others:
        transfers = ("transfer_to_agent", {"agent_name": authors[-1]}) in calls_of(turn)
        yield authors[-1], others[0], transfers


class Change(NamedTuple):
    kind: str
    eval_set_id: str
    eval_id: str
    turn: int | None
    before: str
    after: str
    is_noticed: bool


def changes_of_sample(agent, run, recorded):
    """Every change of a sample, and whether EXACT calls, ROUGE-1 and the final state notice it."""
    # Takes a second, which every process of the tests would pay at the top.
    from rouge_score.rouge_scorer import RougeScorer

    rouge = RougeScorer(["rouge1"], use_stemmer=True)
    marks = json.loads((agent / "test_config.json").read_text()).get("evaltui", {}).get("turns", [])
    skipped = {(mark["set"], mark["case"], mark["turn"]) for mark in marks if mark["mode"] == "skip"}
    sets = [json.loads(path.read_text()) for path in agent.glob("*.evalset.json")]
    cases = {(data["eval_set_id"], case["eval_id"]): case for data in sets for case in data["eval_cases"]}
    agents = [recorded.agent["name"], *(recorded.agent.get("sub_agents") or ())]
    tools = {tool["name"] for tool in recorded.agent["tools"]}
    tools |= {name for case in cases.values() for turn in case["conversation"] for name, _ in calls_of(turn)}
    tools.discard("transfer_to_agent")
    for row, result in zip(recorded.cases, run["cases"], strict=True):
        if result["status"] != "PASSED":
            continue
        key = result["eval_set_id"], result["eval_id"]
        expected, turns = cases[key]["conversation"], result["repeats"][0]["actual"]
        pairs = [(text_of(want), text_of(turn)) for want, turn in zip(expected, turns, strict=True)]
        for place, turn in enumerate(turns):
            is_checked = (*key, place) not in skipped
            where, made, text = (*key, place + 1), calls_of(turn), text_of(turn)
            for kind, calls in call_changes(made, tools) if is_checked else ():
                yield Change(kind, *where, "", "", calls != calls_of(expected[place]))
            for kind, after in answer_changes(text, [*results_of(turn)]):
                changed = [*pairs[:place], (pairs[place][0], after), *pairs[place + 1 :]]
                scores = [rouge.score(want, said)["rouge1"].fmeasure for want, said in changed]
                yield Change(kind, *where, text, after, sum(scores) / len(scores) < 0.8)
            for after in texts_without(text, parts(turn, "function_response", "tool_responses")):
                changed = [*pairs[:place], (pairs[place][0], after), *pairs[place + 1 :]]
                scores = [rouge.score(want, said)["rouge1"].fmeasure for want, said in changed]
                yield Change("tool response dropped", *where, text, after, sum(scores) / len(scores) < 0.8)
            for before, after, transfers in agent_changes(turn, agents):
                yield Change("another agent", *where, before, after, transfers and is_checked)
        state = recorded.results(row.number)[0].final_state
        for _, after in state_changes(cases[key].get("final_session_state") or {}, state or {}):
            kind = "state key dropped" if after is None else "state changed"
            yield Change(kind, *key, None, "", "", True)


def text_of(turn):
    return "\n".join(part["text"] for part in turn["final_response"]["parts"])


def calls_of(turn):
    return [(item["name"], item.get("args") or {}) for item in parts(turn, "function_call", "tool_uses")]


def results_of(turn):
    for response in parts(turn, "function_response", "tool_responses"):
        yield from (response.get("response") or {}).values()


def parts(turn, kind, name):
    data = turn.get("intermediate_data") or {}
    events = data.get("invocation_events", [])
    in_events = [
        part.get(kind) for event in events for part in (event.get("content") or {}).get("parts") or []
    ]
    return [*filter(None, in_events), *data.get(name, [])]


@pytest.mark.parametrize("sample", ["calculator", "home_automation", "travel_desk"])
def test_a_second_enumeration_agrees_on_every_change_of_the_samples(sample, tmp_path, capsys):
    if sample == "travel_desk":
        pytest.importorskip("google.adk")
    agent = shutil.copytree(SAMPLES / sample, tmp_path / sample)
    call("run", agent, "--report", f"json={tmp_path / 'run.json'}")
    run = json.loads((tmp_path / "run.json").read_text())
    code, report = gaps(agent)
    changes = [*changes_of_sample(agent, run, RunFile(next(iter(agent.rglob("*.sqlite")))))]
    total = Counter(change.kind for change in changes)
    noticed = Counter(change.kind for change in changes if change.is_noticed)
    assert code == 0
    assert kinds_of(report) == {kind: (noticed[kind], number) for kind, number in total.items()}
    assert sorted(gaps_of(report), key=repr) == sorted(
        (change for change in changes if not change.is_noticed), key=repr
    )


def gaps_of(report):
    keys = ("eval_set_id", "eval_id", "turn", "before", "after")
    for row in report["kinds"]:
        yield from (Change(row["kind"], *(gap[key] for key in keys), False) for gap in row["gaps"])


AGENT = """
from evaltui.events import tool_call


def root_agent(message, session):
    if "find" in message:
        yield tool_call("find_orders", {"limit": 5, "late": True})
    session.state["seen"] = message
    yield message.replace("find", "Found") if "find" in message else "Die Lampe ist aus und das Licht auch."
"""
FIND = [{"name": "find_orders", "args": {"limit": 5, "late": True}}]
FAILS = "does not pass by its case and config of now"
GERMAN = "Die Lampe ist aus und das Licht auch."


@pytest.fixture
def desk(tmp_path):
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    write_eval_set(
        folder,
        "orders",
        make_case("finds", make_turn("find the order 7 for you", "Found the order 7 for you", FIND)),
        make_case("lamp", make_turn("Licht", GERMAN, []), final_session_state={"seen": "Licht"}),
        make_case("fails", make_turn("find the order", "no", FIND)),
    )
    write_test_config(folder, tool_trajectory_avg_score=1.0, response_match_score=0.8)
    return folder


def kinds_of(report):
    return {row["kind"]: (row["noticed"], row["changes"]) for row in report["kinds"]}


def skipped_in(report):
    return {(item["eval_id"], item["turn"]): item["reason"] for item in report["not_counted"]}


def test_gaps_of_any_agent_name_what_was_not_counted(desk, capsys):
    write_eval_set(desk, "more", make_case("pays", make_turn("Licht", GERMAN, ["pay"])))
    call("run", desk)
    code, report = gaps(desk)
    kinds, skipped = kinds_of(report), skipped_in(report)
    assert code == 0
    assert kinds["argument changed"] == (2, 2)
    assert kinds["another tool"] == (1, 1)
    assert kinds["an invented promise"][1] == 1
    assert kinds["answer emptied"] == (2, 2)
    assert kinds["state key dropped"] == (1, 1)
    assert skipped["fails", None] == FAILS
    assert skipped["lamp", 1].startswith("not English as far as known")
    cells = {(cell["kind"], cell["name"]): cell for cell in report["coverage"]}
    assert cells["state key", "seen"] == {
        "kind": "state key",
        "name": "seen",
        "reached": 4,
        "expected": 1,
        "noticed": 2,
    }
    assert cells["argument", "find_orders.late"]["expected"] == 2


def test_another_agent_is_not_noticed_by_metrics_without_a_verdict(tmp_path, capsys):
    pytest.importorskip("google.adk")
    agent = shutil.copytree(SAMPLES / "travel_desk", tmp_path / "travel_desk")
    skipped = {"set": "travel_desk", "case": "finds_a_flight", "turn": 0, "mode": "skip"}
    criteria = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    write_test_config(agent, criteria=criteria, evaltui={"turns": [skipped]})
    call("run", agent, "travel_desk:finds_a_flight")
    _, report = gaps(agent, "travel_desk:finds_a_flight")
    assert kinds_of(report)["another agent"] == (0, 1)


def test_an_empty_answer_is_noticed_by_a_check_of_the_agent_as_in_a_run(desk, capsys):
    answers = [{"agent": "root_agent", "set": "orders", "case": "lamp"}]
    write_test_config(desk, criteria={"response_match_score": 0.0}, evaltui={"answers": answers})
    assert call("run", desk, "orders:lamp") == 0
    _, report = gaps(desk, "orders:lamp")
    agent = (desk / "agent.py").read_text()
    (desk / "agent.py").write_text(agent.replace(GERMAN, ""))
    assert call("run", desk, "orders:lamp") == 1
    assert kinds_of(report)["answer emptied"] == (1, 1)


def test_traces_that_were_scored_have_gaps_too(desk, capsys):
    call("run", desk)
    _, of_run = gaps(desk)
    call("export", desk, "--run", "last", "-o", desk.parent / "traces.json")
    call("score", desk.parent / "traces.json", "--sets", desk / "orders.evalset.json", "--home", desk)
    _, of_traces = gaps(desk)
    assert of_run["runs"] != of_traces["runs"]
    assert kinds_of(of_traces) == kinds_of(of_run)


def test_cases_that_ended_with_an_error_say_with_which(desk, capsys):
    (desk / "agent.py").write_text("import no_such_module\n")
    call("run", desk)
    reasons = set(skipped_in(gaps(desk)[1]).values())
    assert reasons == {
        "did not pass in run 1: agent.py:1: ModuleNotFoundError: No module named 'no_such_module'"
    }


def test_a_case_that_changed_since_is_not_counted(desk, capsys):
    call("run", desk)
    path = desk / "orders.evalset.json"
    text = path.read_text()
    path.write_text(text.replace("find the order 7 for you", "find the order 8 for you"))
    assert skipped_in(gaps(desk)[1])["finds", None] == "changed since run 1: run it again"
    path.write_text(text.replace("Found the order 7", "Another text"))
    assert skipped_in(gaps(desk)[1])["finds", None] == FAILS


def test_a_change_of_the_agent_since_its_run_is_named(desk, capsys):
    call("run", desk)
    (desk / "data.txt").write_text("1")
    gaps(desk)
    assert "evaltui gaps: stale: data.txt changed after run 1\n" in capsys.readouterr().err
    (desk / "data.txt").unlink()
    gaps(desk)
    assert "stale" not in capsys.readouterr().err


def test_a_case_that_passes_since_its_expectation_changed_is_counted(desk, capsys):
    call("run", desk)
    path = desk / "orders.evalset.json"
    path.write_text(path.read_text().replace('"no"', '"Found the order"'))
    _, report = gaps(desk)
    assert ("fails", None) not in skipped_in(report)
    assert kinds_of(report)["argument changed"] == (4, 4)


def test_rules_of_now_decide(desk, capsys):
    call("run", desk)
    write_test_config(
        desk,
        criteria={"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8, "my_metric": 0.5},
        custom_metrics={"my_metric": {"code_config": {"name": "metrics.mine"}}},
        evaltui={
            "rules": [new_rule("find_orders", "limit", "ignore")],
            "answers": [{"numbers": "equal", "contains": ["Found"], "set": "orders", "case": "finds"}],
        },
    )
    _, report = gaps(desk)
    kinds = kinds_of(report)
    assert kinds["argument changed"] == (1, 1)
    assert kinds["another number"] == (1, 1)
    assert report["left_out_metrics"] == ["my_metric"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--fail-under", "0.01"], 0, ""),
        (["--fail-under", "1"], 1, "noticed, below --fail-under 1"),
        (["--fail-under", "0"], 2, "is not a rate up to 1"),
        (["orders:fails"], 3, "nothing to change"),
        (["nowhere"], 2, "nowhere"),
        (["--run", "9"], 2, "has no run '9'"),
        (["--report", "html=x.html"], 2, "'html' is not one of console, json"),
    ],
)
def test_exit_codes(desk, capsys, words, code, message):
    call("run", desk)
    capsys.readouterr()
    assert call("gaps", desk, *words) == code
    assert message in capsys.readouterr().err


def test_the_rate_of_a_part_of_the_cases_decides_nothing(desk, capsys):
    call("run", desk, "orders:finds")
    assert call("gaps", desk, "orders:finds", "--fail-under", "0.01") == 0
    capsys.readouterr()
    assert call("gaps", desk, "--fail-under", "0.01") == 3
    assert "without a result" in capsys.readouterr().err


def test_where_all_changes_are_meant_so_there_is_a_passing_case(desk, capsys):
    write_test_config(desk, response_match_score=0.0)
    call("run", desk)
    code, report = gaps(desk, "orders:finds")
    marks = [
        {"set": "orders", "case": "finds", "turn": 0, "kind": row["kind"], "digest": gap["digest"]}
        for row in report["kinds"]
        for gap in row["gaps"]
    ]
    assert code == 0
    write_test_config(desk, criteria={"response_match_score": 0.0}, evaltui={"meant_so": marks})
    capsys.readouterr()
    assert call("gaps", desk, "orders:finds") == 3
    assert f"nothing counted: {len(marks)} changes meant so" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["desk"],
        ["desk", "--results-dir", "out of here"],
        ["-m", "desk.agent"],
        ["http://127.0.0.1:9/desk", "--home", "desk", "--results-dir", "out"],
    ],
)
def test_without_a_run_the_command_that_runs_it_is_named_as_the_agent_was(desk, monkeypatch, capsys, words):
    monkeypatch.chdir(desk.parent)
    address = shlex.join(words)
    assert call("gaps", *words) == 2
    said = f"nothing of orders.evalset.json in the last 20 runs. Run it first: `evaltui run {address}`"
    assert said in capsys.readouterr().err
    assert call("gaps", *words, "--run", "7") == 2
    assert f"`evaltui runs {address}` lists the runs" in capsys.readouterr().err


def test_each_case_has_its_newest_run(desk, capsys):
    write_eval_set(desk, "others", make_case("other", make_turn("Licht", GERMAN, [])))
    call("run", desk)
    call("run", desk, "orders:fails")
    call("run", desk, "others")
    write_eval_set(desk, "new", make_case("later", make_turn("Licht", GERMAN, [])))
    first, second, third = (path.name.removesuffix(".sqlite") for path in sorted(desk.rglob("*.sqlite")))
    _, report = gaps(desk)
    assert report["runs"] == {"orders.evalset.json": [second, first], "others.evalset.json": [third]}
    assert skipped_in(report)["fails", None] == FAILS
    assert skipped_in(report)["later", None] == "no result"
    assert gaps(desk, "orders:finds,lamp", "--run", "1")[1]["runs"] == {"orders.evalset.json": [first]}


def test_conversations_of_other_agents_and_variants_are_changed_only_by_name(desk, monkeypatch, capsys):
    monkeypatch.chdir(desk.parent)
    other = "\n\ndef other_agent(message, session):\n    return os.environ.get('SAID', 'no')\n"
    (desk / "agent.py").write_text(f"import os\n{AGENT}{other}")
    (desk.parent / "pyproject.toml").write_text(
        f'[tool.evaltui.variants.said]\nenv = {{ SAID = "{GERMAN}" }}\n'
    )
    agent = ("-m", "desk.agent:other_agent")
    call("run", "desk", "orders:finds")
    call("run", *agent, "orders:lamp")
    call("run", *agent, "orders:lamp", "--variant", "said")
    assert skipped_in(gaps("desk")[1])["lamp", None] == "no result"
    out = desk / "other.json"
    assert call("gaps", *agent, "--report", f"json={out}") == 3
    assert skipped_in(json.loads(out.read_text()))["lamp", None] == FAILS
    assert set(gaps("desk", "orders:lamp", "--run", "3")[1]["runs"]) == {"orders.evalset.json"}


def test_a_flaky_case_is_changed_in_a_run_that_passed(desk, capsys):
    flaky = 'yield message.replace("find", "Found") if "find" in message else'
    text = (desk / "agent.py").read_text()
    (desk / "agent.py").write_text(
        text.replace(flaky, f"{flaky} 'no' if COUNT.append(1) or len(COUNT) == 1 else").replace(
            "def root_agent", "COUNT = []\n\n\ndef root_agent"
        )
    )
    call("run", desk, "orders:lamp", "--runs", "3", "--pass-if", "0.5", "--workers", "1", "--parallel", "1")
    assert kinds_of(gaps(desk, "orders:lamp")[1])["answer emptied"] == (1, 1)
