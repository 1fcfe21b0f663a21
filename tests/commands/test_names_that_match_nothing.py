"""Names that stand for nothing: refused where they decide a verdict, else named, by run and lint alike."""

import copy
import json
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_set

import evaltui
from evaltui.core.model.problems import EvalSetError

AGENT = """
    def root_agent(message, session): return message
    def judge(prompt, *config): return ""
    def brief(actual, expected, criterion): return 1.0
"""
TEXT = {"parts": [{"text": "hi"}]}
CALLS = {"tool_uses": [{"name": "find", "args": {"query": "x"}}]}
SET = make_set("orders", make_case("one", {"user_content": TEXT, "final_response": TEXT}))
CASE = ("eval_cases", 0)
TURN = (*CASE, "conversation", 0)
RUBRICS = "rubric_based_final_response_quality_v1"
CONFIG = {"criteria": {"response_match_score": 0.8}}
JUDGED = {"criteria": {RUBRICS: {"threshold": 0.8, "judge_model_options": {"judge_model": "agent:judge"}}}}
JUDGE = ("criteria", RUBRICS, "judge_model_options", "judge_model")
NO_TEXT = [{"rubric_id": "r", "rubric_content": {"text_property": " "}}]


def rubric(kind):
    return [{"rubric_id": "r", "rubric_content": {"text_property": "kind"}, "type": kind}]


def mark(mode):
    return {"set": "orders", "case": "one", "turn": 0, "mode": mode}


def put(data, path, value):
    data = copy.deepcopy(data)
    *above, last = path
    place = data
    for step in above:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[last] = value
    return data


IN_SESSION = put(SET, (*CASE, "session_input"), {"app_name": "a", "user_id": "u"})


@pytest.fixture
def write(write_agent):
    folder = write_agent(AGENT)

    def written(eval_set, config):
        (folder / "orders.evalset.json").write_text(json.dumps(eval_set, indent=1))
        (folder / "test_config.json").write_text(json.dumps(config, indent=1))
        return folder

    return written


REFUSED = [
    (SET, put(CONFIG, ("criteria", "tool_trajektory_avg_score"), 1.0), "criteria.tool_trajektory_avg_score"),
    (SET, put(CONFIG, ("evaltui", "criteria", "trajectory_recal"), 1.0), "evaltui.criteria.trajectory_recal"),
    (SET, put(CONFIG, ("criteria", "tool_call_count_v1"), 1.0), "criteria.tool_call_count_v1"),
    (
        SET,
        put(CONFIG, ("criteria", "tool_trajectory_avg_score"), {"threshold": 1, "match_type": "EXAKT"}),
        "criteria.tool_trajectory_avg_score",
    ),
    (
        SET,
        put(JUDGED, ("criteria", RUBRICS, "judge_model_options", "num_sample"), 1),
        f"criteria.{RUBRICS}",
    ),
    (SET, put(JUDGED, ("criteria", RUBRICS, "rubrics"), ["kind"]), f"criteria.{RUBRICS}"),
    *(
        (SET, put(JUDGED, ("criteria", RUBRICS, "rubrics"), rubrics), f"criteria.{RUBRICS}")
        for rubrics in (
            [*rubric(""), {"rubric_id": "r", "rubric_content": {"text_property": "brief"}}],
            [{"rubric_id": "r", "rubric_content": {"text_property": " "}}],
        )
    ),
    (
        SET,
        put(CONFIG, ("evaltui", "criteria", "trajectory_single_tool_use"), {"threshold": 1, "tol": "find"}),
        "evaltui.criteria.trajectory_single_tool_use",
    ),
    (SET, put(CONFIG, ("evaltui", "rulez"), []), "evaltui.rulez"),
    *(
        (
            SET,
            put(CONFIG, ("evaltui", "criteria", name), {"threshold": 1, "function": "agent.brief"}),
            f"evaltui.criteria.{name}",
        )
        for name in ("answer_rules", "eval_case", "live_model_config", "conversation_scenario")
    ),
    (
        SET,
        put(CONFIG, ("user_simulator_config",), {"max_allowed_invocations": 3, "maxAllowedInvocations": 9}),
        "user_simulator_config.max_allowed_invocations",
    ),
    (put(SET, (*CASE, "rubrics"), rubric("FINAL_RESPONS_QUALITY")), JUDGED, "eval_cases[0].rubrics[0].type"),
    (put(SET, (*CASE, "rubrics"), rubric("final_response_quality")), JUDGED, "eval_cases[0].rubrics[0].type"),
    (
        put(SET, (*TURN, "rubrics"), rubric("FINAL_RESPONSE_QUALITY ")),
        JUDGED,
        "eval_cases[0].conversation[0].rubrics[0].type",
    ),
    (SET, put(JUDGED, ("criteria", RUBRICS, "rubrics"), NO_TEXT), f"criteria.{RUBRICS}"),
    (put(SET, (*CASE, "rubrics"), NO_TEXT), JUDGED, "eval_cases[0].rubrics[0].rubric_content"),
    (
        put(SET, (*TURN, "rubrics"), NO_TEXT),
        JUDGED,
        "eval_cases[0].conversation[0].rubrics[0].rubric_content",
    ),
    (SET, put(JUDGED, JUDGE, "agent:jugde"), ".".join(JUDGE)),
    (SET, put(JUDGED, JUDGE, "my_agent.agent:jugde"), ".".join(JUDGE)),
    (
        SET,
        put(CONFIG, ("evaltui", "criteria", "mine"), {"function": "my_agent.agent.mine", "threshold": 1}),
        "evaltui.criteria.mine.function",
    ),
    (put(SET, (*TURN, "user_contents"), TEXT), CONFIG, "eval_cases[0].conversation[0].user_contents"),
    *(
        (put(IN_SESSION, (*CASE, *keys), {}), CONFIG, ".".join(("eval_cases[0]", *keys)))
        for keys in (("rubric",), ("final_sesion_state",), ("finalSesionState",), ("session_input", "stat"))
    ),
    (put(SET, (*CASE, "sessionImput"), {}), CONFIG, "eval_cases[0].sessionImput"),
    (
        [{"name": "one", "data": [{"query": "hi", "reference": "hi", "expected_tool_us": []}]}],
        CONFIG,
        "[0].data[0].expected_tool_us",
    ),
    (SET, put(CONFIG, ("evaltui", "answers"), [{"regex": ""}]), "evaltui.answers[0].regex"),
    *(
        (
            SET,
            put(CONFIG, ("evaltui", "answers"), [{**names, "contains": ["x"]}]),
            f"evaltui.answers[0].{key}",
        )
        for key, names in (
            ("case", {"set": "orders", "case": "One"}),
            ("case", {"case": "two"}),
            ("set", {"set": "Orders"}),
            ("set", {"set": "order"}),
            ("set", {"set": "orders.evalset.json", "case": "one"}),
        )
    ),
    *((SET, put(CONFIG, (key,), {"optional": []}), key) for key in ("evaltu", "EVALTUI")),
    (SET, put(CONFIG, ("evaltui", "turns"), [mark("skip"), mark("context")]), "evaltui.turns[0].mode"),
]


@pytest.mark.parametrize(("eval_set", "config", "place"), REFUSED, ids=[place for *_, place in REFUSED])
def test_what_a_run_refuses_is_an_error_of_lint_at_the_same_place(write, eval_set, config, place, capsys):
    agent = write(eval_set, config)
    with pytest.raises(EvalSetError) as refused:
        evaltui.evaluate_sync(agent)
    assert call("lint", agent) == 1
    errors = [line for line in capsys.readouterr().out.splitlines() if ": error: " in line]
    assert [line.replace(" error:", "", 1) for line in errors] == [str(refused.value)]
    file, line, _ = str(refused.value).split(":", 2)
    assert place.rpartition(".")[2].partition("[")[0] in Path(file).read_text().splitlines()[int(line) - 1]
    assert f": {place}: " in str(refused.value)


NAMED = [
    (put(SET, ("owner",), 1), CONFIG, "owner: unknown key, ignored"),
    (put(SET, (*CASE, "conversatoin"), 1), CONFIG, "eval_cases[0].conversatoin: unknown key, ignored"),
    (
        put(SET, (*CASE, "rubrics"), rubric("TOOL_USE_QUALITY")),
        CONFIG,
        "eval_cases[0].rubrics[0]: not judged: no criterion of the config is for rubrics of type "
        "TOOL_USE_QUALITY",
    ),
    (
        put(SET, (*TURN, "rubrics"), rubric("")),
        CONFIG,
        "eval_cases[0].conversation[0].rubrics[0]: not judged: no criterion of the config is for rubrics "
        "without a type",
    ),
    (SET, put(CONFIG, ("criterias",), {}), "criterias: unknown key, ignored"),
    (
        SET,
        {"criteria": {"response_evaluation_score": 1}},
        "criteria.response_evaluation_score: every score from 1 to 5 reaches its threshold, 1",
    ),
    (
        SET,
        put(
            put(JUDGED, ("criteria", RUBRICS, "judge_model_options", "judge_model_config"), {}),
            ("criteria", RUBRICS, "rubrics"),
            rubric(""),
        ),
        f"criteria.{RUBRICS}.judge_model_options.judge_model_config: ignored for {RUBRICS}: agent:judge gets",
    ),
    (
        SET,
        put(CONFIG, ("criteria", "response_match_score"), {"threshold": 0.8, "treshold": 1}),
        "criteria.response_match_score.treshold: unknown key, ignored",
    ),
    (
        SET,
        put(CONFIG, ("userSimulatorConfig",), {"maxAllowedInvocation": 3}),
        "userSimulatorConfig.maxAllowedInvocation: unknown key. Did you mean maxAllowedInvocations?",
    ),
    (
        SET,
        put(CONFIG, ("evaltui", "optional"), ["safety"]),
        "evaltui.optional[0]: 'safety' is not a criterion",
    ),
    (
        put(SET, (*CASE, "conversation"), SET["eval_cases"][0]["conversation"] * 2),
        put(
            put(CONFIG, ("evaltui", "turns"), [mark("context")]),
            ("evaltui", "answers"),
            [{"set": "orders", "case": "one", "turn": 0, "contains": ["x"]}, {"regex": "x"}],
        ),
        "evaltui.answers[0].turn: not checked: evaltui.turns marks this turn as context",
    ),
    *(
        (
            put(SET, (*TURN, "intermediate_data"), CALLS),
            put(CONFIG, ("evaltui", key), value),
            f"evaltui.{says}",
        )
        for key, value, says in (
            ("rules", [{"tool": "fnd", "arg": "query", "match": "type"}], "rules[0].tool: no expected call"),
            ("rules", [{"tool": "find", "arg": "qury", "match": "ignore"}], "rules[0].arg: no expected call"),
            ("rules", [{"tool": "find", "arg": "query.id", "match": "type"}], "rules[0].arg: no expected"),
            ("turns", [{"set": "orders", "case": "on", "turn": 0, "mode": "skip"}], "turns[0].case: no case"),
            ("turns", [{"set": "order", "case": "one", "turn": 0, "mode": "skip"}], "turns[0].set: no eval"),
            (
                "turns",
                [{"set": "orders", "case": "one", "turn": 1, "mode": "skip"}],
                "turns[0].turn: no turn",
            ),
            ("tags", [{"set": "orders", "case": "two", "tags": ["slow"]}], "tags[0].case: no case 'two'"),
            ("tools", {"fnd": "stub"}, "tools.fnd: no expected call of 'fnd'. Did you mean find?"),
        )
    ),
]


@pytest.mark.parametrize(("eval_set", "config", "says"), NAMED, ids=[says[:40] for *_, says in NAMED])
def test_what_is_ignored_is_a_warning_of_lint(write, eval_set, config, says, capsys):
    agent = write(eval_set, config)
    assert call("lint", agent) == 0
    [warning] = [line for line in capsys.readouterr().out.splitlines() if ": warning: " in line]
    assert f" warning: {says}" in warning


def test_what_is_ignored_is_a_note_of_run(write, capsys):
    rules = [{"tool": "fnd", "arg": "query", "match": "type"}]
    agent = write(
        put(put(SET, (*TURN, "intermediate_data"), CALLS), (*CASE, "owner"), 1),
        put(put(CONFIG, ("evaltui", "rules"), rules), ("evaltui", "optional"), ["safety"]),
    )
    assert call("lint", agent) == 0
    warnings = capsys.readouterr().out.replace(" warning:", "").splitlines()
    call("run", agent, "--report", "json=-")
    assert sorted(json.loads(capsys.readouterr().out)["notes"]) == sorted(warnings)
    assert len(warnings) == 3


def test_of_two_sets_with_one_id_the_cases_of_both_are_there(write, capsys):
    checks = [{"set": "orders", "case": name, "contains": ["hi"]} for name in ("one", "two", "three")]
    agent = write(SET, put(CONFIG, ("evaltui", "answers"), checks))
    twin = {**SET, "eval_cases": [{**SET["eval_cases"][0], "eval_id": "two"}]}
    (agent / "twin.evalset.json").write_text(json.dumps(twin))
    assert call("lint", agent) == 1
    named = [line for line in capsys.readouterr().out.splitlines() if "answers" in line]
    assert [line.rpartition(": ")[2] for line in named] == ["no case 'three' in orders"]


def test_an_ignored_argument_may_be_one_that_only_the_agent_gives(write, capsys):
    rule = {"tool": "find", "arg": "trace_id", "match": "ignore"}
    agent = write(put(SET, (*TURN, "intermediate_data"), CALLS), put(CONFIG, ("evaltui", "rules"), [rule]))
    assert (call("lint", agent), capsys.readouterr().out) == (0, "")


def test_a_function_of_the_users_may_read_rubrics_of_any_type(write, capsys):
    own = {"brief": {"threshold": 1, "function": "agent.brief"}}
    agent = write(put(SET, (*CASE, "rubrics"), rubric("STYLE")), {"evaltui": {"criteria": own}})
    assert (call("lint", agent), capsys.readouterr().out) == (0, "")


def test_many_notes_on_a_file_are_counted(write, capsys):
    agent = write(SET | {f"{name}_key": 1 for name in "abcdefg"}, CONFIG)
    assert call("run", agent, "--report", "json=-") == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert len(notes) == 6
    assert notes[-1].endswith("orders.evalset.json: 2 more problems; `evaltui lint` lists them")
