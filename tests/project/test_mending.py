"""`lint --fix`: what has exactly one right mend, and nothing else."""

from __future__ import annotations

import json
from random import Random

import pytest
from eval_data import make_case

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.model.json_values import camel
from evaltui.core.model.validation import validate_eval_set
from evaltui.project.lint import lint, mended_file

TEXT = {"role": "user", "parts": [{"text": "hello"}]}


def a_set():
    call = {"name": "find", "args": {"k_v": 1, "kV": 1}}
    turn = {
        "user_content": TEXT,
        "final_response": {"role": "model", "parts": [{"text": "x"}]},
        "intermediate_data": {"tool_uses": [call]},
    }
    event = {"author": "x", "content": TEXT, "model_version": "1"}
    second = {"userContent": TEXT, "intermediateData": {"invocationEvents": [event]}}
    session = {"app_name": "a", "user_id": "u", "state": {"k_v": 1, "kV": 1}}
    return {
        "eval_set_id": "s",
        "creation_timestamp": 1.5,
        "mine": 1,
        "eval_cases": [make_case("a", turn, second, session_input=session)],
    }


def a_config():
    return {
        "criteria": {"response_match_score": 0.5, "mine": {"threshold": 1}, "yours": 1.0},
        "custom_metrics": {
            name: {
                "code_config": {"name": "a.b"},
                "metric_info": {"metric_name": name, "metric_value_info": {}},
            }
            for name in ("mine", "yours")
        },
    }


def objects(data):
    if isinstance(data, dict):
        yield data
    for one in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from objects(one)


def damaged_set(draw):
    data = a_set()
    for one in [one for one in objects(data) if not one.keys() & {"kV"}]:
        for name in list(one):
            other = camel(name)
            if other != name and draw.random() < 0.3:
                one[other] = one[name] if draw.random() < 0.8 else {"another": 1}
        for name in ("user_content", "userContent", "final_response"):
            match draw.randint(0, 6):
                case 0 if name in one:
                    one[name] = "a text"
                case 1 if name in one:
                    one[name] = {"role": "assistant", "parts": [{"text": "x"}]}
    if draw.random() < 0.3:
        data["evalSetId"] = data.pop("eval_set_id")
    return data


def damaged_config(draw):
    data = a_config()
    for name in ("trajectory_recall", "trajectory_precision"):
        if draw.random() < 0.5:
            data["criteria"][name] = draw.choice([0.5, {"threshold": 0.5, "ignore_args": True}])
    if draw.random() < 0.5:
        data["criteria"]["short"] = {"threshold": 0.5, "function": "a.b"}
    if draw.random() < 0.5:
        data["evaltui"] = draw.choice(
            [{}, {"criteria": {"short": 1}}, {"criteria": {"trajectory_recall": 0.1}}]
        )
    for name in ("mine", "yours"):
        parts = data["custom_metrics"][name]
        where = draw.choice([parts, parts["code_config"], parts["metric_info"], {}])
        where[draw.choice(["lower_is_better", "lowerIsBetter"])] = draw.choice([True, False, "x"])
    return data


def written(data, draw):
    """In any layout."""
    return json.dumps(data, indent=draw.choice([None, 1, 4, "\t"])).replace(
        "\n", draw.choice(["\n", "\r\n"])
    ) + draw.choice(["", "\n"])


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 4_000), marks=pytest.mark.thorough)], ids=["few", "many"]
)
def test_a_mended_file_means_the_same_and_needs_no_mend(seeds, tmp_path):
    mended_sets = mended_configs = 0
    for seed in seeds:
        draw = Random(seed)
        path = tmp_path / "a.evalset.json"
        before = damaged_set(draw)
        path.write_bytes(written(before, draw).encode())
        mended = mended_file(path)
        after = before if mended is None else json.loads(mended.text)
        model, _ = validate_eval_set(before)
        if model is not None:
            assert without_roles(validate_eval_set(after)[0]) == without_roles(model)
        if mended is not None:
            mended_sets += 1
            path.write_bytes(mended.text.encode())
            assert mended_file(path) is None
            assert not [one for one in lint([path]) if "is a text" in one.message or "role" in one.message]

        path = tmp_path / "test_config.json"
        before = damaged_config(draw)
        path.write_bytes(written(before, draw).encode())
        mended = mended_file(path)
        after = before if mended is None else json.loads(mended.text)
        config, _ = validate_config(before)
        if config is not None:
            metrics = {
                one.metric_name: one.criterion.model_dump(exclude={"function", "interval"})
                for one in config.metrics()
            }
            again = {
                one.metric_name: one.criterion.model_dump(exclude={"function", "interval"})
                for one in validate_config(after)[0].metrics()
            }
            assert metrics == again
        if mended is not None:
            mended_configs += 1
            path.write_bytes(mended.text.encode())
            assert mended_file(path) is None
    assert min(mended_sets, mended_configs) > len(seeds) / 4


def without_roles(model):
    """Nor twins, which models that are open keep beside their fields."""
    data = model.model_dump(mode="json", exclude_none=True)
    for one in objects(data):
        one.pop("role", None)
        for name in [name for name in one if name != camel(name) and camel(name) != "kV"]:
            one.pop(camel(name), None)
    return data


ODD = """\ufeff{ "evalSetId" :"s",
"evalCases":[
   {"eval_id":"a" , "conversation":[ {"user_content":"hi \\u00e9",   "final_response":
     {"role":"assistant","parts":[{"text":"x"}]}} ],
"note":1.50}
 ]}"""


def test_all_else_stays_to_the_byte(tmp_path):
    path = tmp_path / "a.evalset.json"
    path.write_bytes(ODD.encode())
    mended = mended_file(path)
    content = '"user_content":{"role":"user","parts":[{"text":"hi \\u00e9"}]},   "final'
    expected = ODD.replace('"user_content":"hi \\u00e9",   "final', content).replace("assistant", "model")
    assert mended.text == expected.replace("evalSetId", "eval_set_id").replace("evalCases", "eval_cases")
    assert [mend.located("fixed").removeprefix(f"{path}:") for mend in mended.mends] == [
        "3: fixed: evalCases[0].conversation[0].user_content: text written as a content",
        "4: fixed: evalCases[0].conversation[0].final_response.role: changed to model",
        "1: fixed: evalSetId: renamed to eval_set_id, which ADK reads",
        "2: fixed: evalCases: renamed to eval_cases, which ADK reads",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "5",
        '{"eval_cases": [{"eval_id": "a"}, {"eval_id": "a"}]}',
        '[{"query": "x"}]',
        '{"evalSetId": "a", "x": 1, "x": 1}',
        '{"evalSetId": "a", "eval_set_id": "b"}',
    ],
)
def test_what_is_left_alone(text, tmp_path):
    path = tmp_path / "a.evalset.json"
    path.write_text(text, encoding="utf-8")
    assert mended_file(path) is None
