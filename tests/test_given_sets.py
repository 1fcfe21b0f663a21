"""Eval sets and configs in every form that Python code can hand over come to the same results."""

import json
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace

import pytest
from eval_data import make_case, make_set, make_turn, write_eval_set

import evaltui
from evaltui import EvalCase, EvalConfig, EvalSet, EvalSetError, evaluate, evaluate_sync, events
from evaltui.core.model.problems import SelectionError
from evaltui.runs.run_file import RunFile
from tests.commands.command_line import call

AGENT = """
from evaltui import events

def root_agent(message, session):
    yield events.tool_call("look", {"at": "shelf"})
    yield events.tool_result("look", {"found": True})
    yield events.tool_call("find", {"what": message})
    yield events.tool_result("find", {"hits": 3})
    yield "found " + message
"""
TURN = make_turn("hats", "found hats", [{"name": "find", "args": {"what": "hats"}}])
CASES = [make_case("good", TURN), make_case("twin", TURN, TURN)]
SET = make_set("basics", *CASES)
CONFIG = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"},
        "response_match_score": 0.9,
    }
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project") / "shop"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    write_eval_set(folder, "basics", *CASES)
    (folder / "test_config.json").write_text(json.dumps(CONFIG))
    return folder


def agent():
    made = {}
    exec(AGENT, made)
    return made["root_agent"]


def verdicts(result):
    """What a run says, but where its cases are and how long they took."""
    return [
        (
            one.eval_id,
            [replace(metric, per_invocation=()) for metric in one.metrics if metric.threshold is not None],
        )
        for one in result.cases
    ]


def own_config():
    """The config as seeds and guides write it."""
    trajectory = evaltui.ToolTrajectoryCriterion(
        threshold=1.0, match_type=evaltui.ToolTrajectoryCriterion.MatchType.IN_ORDER
    )
    names = evaltui.PrebuiltMetrics
    return EvalConfig(
        criteria={names.TOOL_TRAJECTORY_AVG_SCORE.value: trajectory, names.RESPONSE_MATCH_SCORE: 0.9}
    )


def test_every_form_of_a_set_and_a_config_is_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    file = folder / "basics.evalset.json"
    model = EvalSet.model_validate(SET)
    sets = {
        "path": file,
        "text": str(file),
        "folder": str(folder),
        "id": "basics",
        "cases of an id": "basics:good,twin",
        "all": None,
        "list": [file],
        "data": SET,
        "camel case": {"evalSetId": "basics", "evalCases": CASES},
        "model": model,
        "cases": [EvalCase.model_validate(one) for one in CASES],
        "cases as data": CASES,
        "a case and a set": [CASES[0], {**SET, "eval_cases": CASES[1:]}],
    }
    configs = {
        "path": folder / "test_config.json",
        "text": "shop/test_config.json",
        "data": CONFIG,
        "model": EvalConfig.model_validate(CONFIG),
        "written": own_config(),
    }
    found = {name: evaluate_sync(agent(), given, CONFIG, home=folder) for name, given in sets.items()}
    found |= {name: evaluate_sync(agent(), SET, given) for name, given in configs.items()}
    expected = verdicts(found["path"])
    assert [name for name, _ in expected] == ["good", "twin"]
    for name, result in found.items():
        assert result.passed, (name, result)
        assert sorted(verdicts(result), key=lambda one: one[0]) == expected, name
    assert [one.eval_set_id for one in found["a case and a set"].cases] == ["basics", "cases"]


@pytest.mark.parametrize(
    ("given", "cases"),
    [
        (["basics:twin", "basics:good"], ["good", "twin"]),
        (["basics:good", "basics.evalset.json:good"], ["good"]),
        (["basics", "basics:good"], ["good", "twin"]),
        (["basics:good", None], ["good", "twin"]),
    ],
)
def test_a_case_that_is_given_twice_runs_once(folder, given, cases, tmp_path):
    result = evaluate_sync(folder, given, results_dir=tmp_path)
    assert [case.eval_id for case in result.cases] == cases
    assert len(list(RunFile(result.log).cases)) == len(cases)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_no_null_in_a_model(value):
    calls = {"tool_uses": [{"name": "find", "args": {"what": value}}]}
    data = make_set("s", {**CASES[0], "conversation": [{**TURN, "intermediate_data": calls}]})

    def with_null(message, session):
        yield events.tool_call("find", {"what": None})
        yield events.tool_result("find", {"hits": 3})
        yield "found " + message

    for given in (data, EvalSet.model_validate(data), EvalCase.model_validate(data["eval_cases"][0])):
        assert not evaluate_sync(with_null, given, CONFIG).passed


def test_a_file_is_scored_by_its_own_config_unless_one_is_given(folder):
    file = folder / "basics.evalset.json"
    assert evaluate_sync(agent(), file).passed
    assert not evaluate_sync(agent(), file, {"criteria": {"tool_trajectory_avg_score": 1}}).passed


@pytest.mark.adk
@pytest.mark.compat
def test_models_of_google_adk_are_the_same(folder):
    pytest.importorskip("google.adk.evaluation.eval_set")
    from google.adk.evaluation import eval_metrics
    from google.adk.evaluation.eval_case import EvalCase as AdkCase
    from google.adk.evaluation.eval_config import EvalConfig as AdkConfig
    from google.adk.evaluation.eval_set import EvalSet as AdkSet

    trajectory = eval_metrics.ToolTrajectoryCriterion(
        threshold=1.0, match_type=eval_metrics.ToolTrajectoryCriterion.MatchType.IN_ORDER
    )
    config = AdkConfig(criteria={"tool_trajectory_avg_score": trajectory, "response_match_score": 0.9})
    expected = verdicts(evaluate_sync(agent(), SET, CONFIG))
    for given in (AdkSet.model_validate(SET), [AdkCase.model_validate(one) for one in CASES]):
        result = evaluate_sync(agent(), given, config)
        assert result.passed, result
        assert verdicts(result) == expected
    mixed = EvalConfig(criteria={"tool_trajectory_avg_score": trajectory})
    assert evaluate_sync(agent(), SET, mixed).passed


@pytest.mark.parametrize(
    ("eval_sets", "config", "error", "says"),
    [
        ("nothing", None, SelectionError, "no eval set 'nothing'"),
        (make_set("s", {"conversation": []}), None, EvalSetError, r"eval_cases\[0\]"),
        (make_set("s", *CASES[:1] * 2), None, EvalSetError, "eval set 's'.*good"),
        ({"eval_cases": CASES}, None, EvalSetError, "eval_set_id"),
        ([SET, SET], None, ValueError, "two eval sets have the id 'basics'"),
        ([], None, ValueError, "no case selected"),
        (7, None, TypeError, "an eval set is a path, .*, not of type int"),
        (SET, {"criteria": {"response_match_score": "high"}}, EvalSetError, "criteria.response_match_score"),
        (SET, "no_such.json", EvalSetError, "no_such.json: .*no such file"),
        (SET, 0.8, TypeError, "a config is a path, .*, not of type float"),
    ],
)
async def test_what_is_wrong_with_them_is_said_where_it_is(eval_sets, config, error, says):
    with pytest.raises(error, match=says):
        await evaluate(agent(), eval_sets, config)


def test_what_nothing_reads_in_them_is_a_warning(folder):
    answers = [{"set": "basics", "case": name, "contains": ["zebra"]} for name in ("god", "twin")]
    config = CONFIG | {"owner": 1, "evaltui": {"optional": ["safety"], "answers": answers}}
    for given in (SET, "basics:good"):
        with pytest.warns(RuntimeWarning) as warned:
            assert not evaluate_sync(agent(), given, config, home=folder).stopped
        assert [str(one.message) for one in warned if issubclass(one.category, RuntimeWarning)] == [
            "owner: unknown key, ignored",
            "evaltui.optional[0]: 'safety' is not a criterion",
            "evaltui.answers[0].case: no case 'god' in basics. Did you mean good?",
        ]
    with pytest.warns(RuntimeWarning, match="eval set 'basics': eval_cases.0..note: unknown key, ignored"):
        evaluate_sync(agent(), {**SET, "eval_cases": [{**CASES[0], "note": 1}, *CASES[1:]]}, CONFIG)


@pytest.mark.parametrize("source", ["beside", "file", "data"])
@pytest.mark.parametrize(
    ("names", "error"),
    [
        ({"set": "Basics"}, "no eval set 'Basics'. Did you mean basics?"),
        ({"set": "basics.evalset.json"}, "no eval set 'basics.evalset.json'. Did you mean basics?"),
        ({"set": "basics", "case": "Good"}, "no case 'Good' in basics. Did you mean good?"),
        ({"case": "Good"}, "no case 'Good' in the eval sets beside this config. Did you mean good?"),
        ({"set": "basics", "case": "good"}, ""),
        ({"set": "of_another_agent"}, ""),
    ],
)
def test_a_check_that_no_response_gets_is_refused_in_any_config(names, error, source, folder, tmp_path):
    config = {**CONFIG, "evaltui": {"answers": [{**names, "not_contains": ["zebra"]}]}}
    file = tmp_path / "config.json"
    if source == "beside":
        shop = tmp_path / "shop"
        shutil.copytree(folder, shop, ignore=shutil.ignore_patterns(".evaltui"))
        file, folder = shop / "test_config.json", shop
    file.write_text(json.dumps(config))
    given = {"beside": None, "file": file, "data": config}[source]
    command = ["--config", file] if source == "file" else []
    if source != "data":
        assert call("run", folder, *command) == (2 if error else 0)
    # Data may be for further sets, too.
    is_refused = error and not (source == "data" and "case" in names)
    with pytest.raises(EvalSetError, match=re.escape(error)) if is_refused else nullcontext():
        assert evaluate_sync(folder, "basics", given).passed


async def test_a_set_with_the_path_of_a_file_as_its_id_is_refused_beside_that(folder):
    name = "basics.evalset.json"
    sets = [{**SET, "eval_set_id": name}, folder / name]
    for eval_sets in (sets, sets[::-1]):
        with pytest.raises(ValueError, match=f"two eval sets have the id '{name}'"):
            await evaluate(agent(), eval_sets, home=folder)


async def test_cases_are_chosen_by_their_tags(folder):
    tags = [
        {"set": "basics", "case": "good", "tags": ["smoke", "slow"]},
        {"set": "basics", "case": "twin", "tags": ["smoke"]},
    ]
    config = {**CONFIG, "evaltui": {"tags": tags}}

    async def chosen(**given):
        return [one.eval_id for one in (await evaluate(agent(), SET, config, **given)).cases]

    assert await chosen(tags=["smoke"]) == ["good", "twin"]
    assert await chosen(tags=("smoke", "slow")) == ["good"]
    assert await chosen(tags=["smoke"], not_tags=["slow"]) == ["twin"]
    wrong = {
        "tags: no selected case has the tag 'smok'. Did you mean smoke?": {"tags": ["smok"]},
        "not_tags: no selected case has the tag 'x'": {"not_tags": ["x"]},
        "tags: no case is left to run": {"tags": ["slow"], "not_tags": ["smoke"]},
    }
    for why, given in wrong.items():
        with pytest.raises(SelectionError, match=f"^{re.escape(why)}"):
            await chosen(**given)
    with pytest.raises(ValueError, match="tags: 'smoke' is not a list of tags"):
        await chosen(tags="smoke")
