"""`evaltui import` of promptfoo suites: prompts, variables, assertions, conversations, tables."""

import json
from pathlib import Path

import pytest

from tests.commands.command_line import call

CONFIG = Path("promptfooconfig.yaml")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def bring(suite, *words, name=CONFIG):
    """Imports a suite, whose providers and prompts are the usual ones unless it has others."""
    text = (
        suite
        if isinstance(suite, str)
        else json.dumps({"prompts": ["{{q}}"], "providers": ["echo"], **suite})
    )
    Path(name).write_text(text, encoding="utf-8")
    return call("import", name, "--into", "s.evalset.json", "--yes", *words)


def cases():
    return json.loads(Path("s.evalset.json").read_text(encoding="utf-8"))["eval_cases"]


def config():
    return json.loads(Path("test_config.json").read_text(encoding="utf-8"))


def text_of(content):
    return content and content["parts"][0]["text"]


def messages():
    return [[text_of(turn["user_content"]) for turn in case["conversation"]] for case in cases()]


def trajectory(match_type):
    return {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": match_type}}


RUBRICS = {"rubric_based_final_response_quality_v1": 1.0}
FIND = {"name": "find", "args": {"id": 7}}
ANY = {"tool": "find", "arg": "*", "match": "ignore"}
# Assertions of a test; expected response, calls, texts of rubrics, rules and criteria.
TAKEN = {
    "equals": ([{"type": "equals", "value": "Hi"}], "Hi", None, [], [], {"response_match_score": 0.8}),
    "similar": (
        [{"type": "similar", "value": "Hi {{name}}", "threshold": 0.9}],
        "Hi Ann",
        None,
        [],
        [],
        {"response_match_score": 0.9},
    ),
    "rouge-n": ([{"type": "rouge-n", "value": "Hi"}], "Hi", None, [], [], {"response_match_score": 0.75}),
    "llm-rubric": ([{"type": "llm-rubric", "value": "Polite"}], None, None, ["Polite"], [], RUBRICS),
    "g-eval": (
        [{"type": "g-eval", "value": ["Polite", "Short"]}],
        None,
        None,
        ["Polite", "Short"],
        [],
        RUBRICS,
    ),
    "factuality": (
        [{"type": "factuality", "value": "It rains"}],
        None,
        None,
        ["The response does not contradict this: It rains"],
        [],
        RUBRICS,
    ),
    "answer-relevance": (
        [{"type": "answer-relevance"}],
        None,
        None,
        ["The response answers the message of the user."],
        [],
        RUBRICS,
    ),
    "tool-used": (
        [{"type": "trajectory:tool-used", "value": {"name": "find", "min": 2}}],
        None,
        [{"name": "find"}, {"name": "find"}],
        [],
        [ANY],
        trajectory("ANY_ORDER"),
    ),
    "tool-sequence": (
        [{"type": "trajectory:tool-sequence", "value": ["find", {"name": "find"}]}],
        None,
        [{"name": "find"}, {"name": "find"}],
        [],
        [ANY],
        trajectory("IN_ORDER"),
    ),
    "exact sequence with arguments": (
        [
            {"type": "trajectory:tool-args-match", "value": {**FIND, "mode": "exact", "ignore": "at.x"}},
            {"type": "trajectory:tool-used", "value": "find"},
            {"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["find"]}},
        ],
        None,
        [FIND],
        [],
        [{"tool": "find", "arg": "['at.x']", "match": "ignore"}],
        {"tool_trajectory_avg_score": 1.0},
    ),
    "tool-args-match": (
        [
            {
                "type": "trajectory:tool-args-match",
                "value": {"name": "find", "args": {"id": 7, "at": 1}, "ignore": "a*"},
            }
        ],
        None,
        [FIND],
        [],
        [{"tool": "find", "arg": "*", "match": "subset"}],
        trajectory("ANY_ORDER"),
    ),
    "cost": ([{"type": "cost", "threshold": 0.01}], None, None, [], [], {"cost_usd": 0.01}),
    "latency": ([{"type": "latency", "threshold": 5000}], None, None, [], [], {"seconds": 5.0}),
    "set of assertions": (
        [{"type": "assert-set", "assert": [{"type": "equals", "value": "Hi"}]}],
        "Hi",
        None,
        [],
        [],
        {"response_match_score": 0.8},
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_assertions_become_expectations_and_criteria(name, capsys):
    assertions, response, calls, rubrics, rules, criteria = TAKEN[name]
    tests = [{"vars": {"q": "Hello", "name": "Ann"}, "assert": assertions}]
    assert bring({"tests": tests}, "--strict") == 0, capsys.readouterr().err
    (turn,) = cases()[0]["conversation"]
    assert text_of(turn.get("final_response")) == response
    assert turn.get("intermediate_data") == (calls and {"tool_uses": calls})
    texts = [rubric["rubric_content"]["text_property"] for rubric in turn.get("rubrics", ())]
    assert texts == rubrics
    block = config()["evaltui"]
    names = {"set": "s", "case": "hello"}
    assert block.get("rules", []) == [{**rule, **names} for rule in rules]
    assert {**config().get("criteria", {}), **block.get("criteria", {})} == criteria
    assert call("lint", ".") == 0


# An assertion, its check, and answers that hold and that do not.
CHECKS = {
    "contains": ("Not (a) test", "so: Not (a) test.", "so: not (a) test."),
    "contains-all": (["b", "a"], "a\nb", "a"),
    "contains-any": ("x., y", "say y", "xx"),
    "equals": ("Hi there", "Hi there", "There hi"),
    "starts-with": ("Hi", "Hi there", "Oh Hi"),
    "regex": ("a+b$", "caab", "abc"),
    "not-contains": ("bad", "good, Bad", "good\nbad"),
    "icontains": ("light", "Lights on", "no"),
    "icontains-all": ("A, b", "Bad", "a"),
    "icontains-any": (["A", "b"], "B", "c"),
    "not-icontains": ("error", "good", "2 ERRORS"),
    "is-json": ({"type": "object", "required": ["a"]}, '{"a": 1}', '{"b": 1}'),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_the_text_become_checks_of_the_answer(name, capsys):
    value, *answers = CHECKS[name]
    tests = [{"vars": {"q": "Hello"}, "assert": [{"type": name, "value": value}]}]
    for answer, code in zip(answers, (0, 1), strict=True):
        Path("agent.py").write_text(f"def root_agent(message, session):\n    return {answer!r}\n")
        assert bring({"tests": tests}, "--strict") == 0, capsys.readouterr().err
        (check,) = config()["evaltui"]["answers"]
        assert {key: check[key] for key in ("set", "case", "turn")} == {
            "set": "s",
            "case": "hello",
            "turn": 0,
        }
        assert call("run", ".") == code, capsys.readouterr().out


AT = "promptfooconfig.yaml: tests[0]"
# Members of a test or suite; and the lines that name what is not taken, without their beginning.
NOT_TAKEN = {
    "others": (
        {"assert": [{"type": "levenshtein", "value": "a"}, {"type": "not-equals", "value": "b"}]},
        [
            f"{AT}.assert[0]: not taken: levenshtein: no counterpart in an eval set",
            f"{AT}.assert[1]: not taken: not-equals: no counterpart in an eval set",
        ],
    ),
    "code": (
        {"assert": [{"type": "javascript", "value": "output"}]},
        [
            f"{AT}.assert[0]: not taken: javascript: code, which is not run; write a metric function, see "
            "`evaltui help criteria`"
        ],
    ),
    "patterns and limits": (
        {
            "assert": [
                {"type": "trajectory:tool-used", "value": "find*"},
                {"type": "trajectory:tool-used", "value": {"name": "find", "max": 1}},
                {"type": "trajectory:tool-args-match", "value": {**FIND, "defaults": {"n": 1}}},
            ]
        },
        [
            f"{AT}.assert[2]: not taken: trajectory:tool-args-match: defaults of arguments have no "
            "counterpart",
            f"{AT}.assert[0]: not taken: trajectory:tool-used: 'find*' is a pattern; name one tool",
            f"{AT}.assert[1]: not taken: trajectory:tool-used: a greatest number of calls has no counterpart",
        ],
    ),
    "settings": (
        {
            "assert": [{"type": "equals", "value": "a", "weight": 2}],
            "threshold": 0.5,
            "options": {"transform": "x"},
        },
        [
            f"{AT}.threshold: not taken: no counterpart in an eval set",
            f"{AT}.options.transform: not taken: no counterpart in an eval set",
            f"{AT}.assert[0].weight: not taken: no counterpart in an eval set",
        ],
    ),
    "weaker match type": (
        {
            "assert": [
                {"type": "trajectory:tool-sequence", "value": ["find"]},
                {"type": "trajectory:tool-used", "value": ["book"]},
            ]
        },
        [f"{AT}.assert[0]: not taken: match type IN_ORDER: a set has one, here ANY_ORDER"],
    ),
    "values in files": (
        {
            "assert": [
                {"type": "icontains", "value": "file://a.txt"},
                {"type": "is-json", "value": "file://a.json"},
            ]
        },
        [f"{AT}.assert[0].value: not taken: in a file; write it into the assertion"],
    ),
    "a schema of another draft": (
        {"assert": [{"type": "is-json", "value": {"items": [{}]}}]},
        [
            f"{AT}.assert[0]: not taken: is-json: the schema is not a JSON Schema: [{{}}] is not of type "
            "'object', 'boolean'"
        ],
    ),
    "no tools": (
        {
            "assert": [
                {"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": []}},
                {"type": "trajectory:tool-used", "value": []},
                {"type": "trajectory:tool-used", "value": {"name": "find", "min": "2"}},
            ]
        },
        [
            f"{AT}.assert[0]: not taken: trajectory:tool-sequence: must be a list of tools, or an object "
            "with steps and mode in_order or exact",
            f"{AT}.assert[1]: not taken: trajectory:tool-used: must name a tool",
            f"{AT}.assert[2]: not taken: trajectory:tool-used: min must be a number of calls, 1 or more",
        ],
    ),
    "a format of texts": (
        {"assert": [{"type": "is-json", "value": {"properties": {"day": {"format": "date"}}}}]},
        [f"{AT}.assert[0].value: not taken: format is not checked"],
    ),
    "a threshold of a rubric": (
        {"assert": [{"type": "llm-rubric", "value": "Polite", "threshold": 0.5}]},
        [f"{AT}.assert[0].threshold: not taken: a rubric is fulfilled or not"],
    ),
    "members of another type": (
        {"options": "x", "metadata": [1], "assert": 5},
        [
            f'{AT}.options: not taken: must be an object, is the string "x"',
            f"{AT}.metadata: not taken: must be an object, is a list",
            f"{AT}.assert: not taken: must be a list, is the number 5",
        ],
    ),
    "a set without assertions": (
        {"assert": [{"type": "assert-set", "assert": "contains"}]},
        [f"{AT}.assert[0]: not taken: a set of assertions without a list of them"],
    ),
    "unknown variable": (
        {"assert": [{"type": "equals", "value": "{{ answer }}"}]},
        [f"{AT}.assert[0]: not taken: has '{{{{ answer }}}}', which is no variable of the test"],
    ),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_parts_without_a_counterpart_are_named(name, capsys):
    members, lines = NOT_TAKEN[name]
    tests = [{"vars": {"q": "Hello"}, **members}]
    assert bring({"tests": tests}, "--strict") == 1
    assert capsys.readouterr().err.splitlines()[:-1] == [f"evaltui import: {line}" for line in lines]
    assert not Path("s.evalset.json").exists()


# Prompts, and members of the suite; the user's messages of each case.
PROMPTS = {
    "text": (["Answer: {{ q }}"], {}, [["Answer: Hello"]]),
    "file": (["file://prompt.txt"], {}, [["From a file: Hello"]]),
    "chat": (
        ['[{"role": "user", "content": "Hi"}, {"role": "user", "content": "{{q}}"}]'],
        {},
        [["Hi", "Hello"]],
    ),
    "prefix": (["{{q}}"], {"options": {"prefix": "> ", "suffix": " <"}}, [["> Hello <"]]),
    "list": (["{{q}} {{n}}"], {"vars": {"q": ["a", "b"], "n": [1, 2]}}, [["a 1"], ["a 2"], ["b 1"], ["b 2"]]),
    "variable in another": (["{{q}}"], {"vars": {"q": "Hi {{n}}", "n": "Ann"}}, [["Hi Ann"]]),
    "object": (["{{q.text}}"], {"vars": {"q": {"text": "Inner"}}}, [["Inner"]]),
    "file of a variable": (["{{q}}"], {"vars": {"q": "file://prompt.txt"}}, [["From a file: {{q}}"]]),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_the_message_is_the_prompt_with_its_variables(name):
    Path("prompt.txt").write_text(
        "From a file: {{q}}\n---\nSecond\n" if name == "file" else "From a file: {{q}}\n"
    )
    prompts, test, expected = PROMPTS[name]
    assert bring({"prompts": prompts, "tests": [{"vars": {"q": "Hello"}, **test}]}) == 0
    assert messages() == expected


def test_tests_of_a_conversation_are_its_turns_and_defaults_hold_for_each():
    tests = [
        {
            "vars": {"q": text},
            "metadata": {"conversationId": name},
            "assert": [{"type": "equals", "value": text}],
        }
        for name, text in (("one", "a"), ("two", "b"), ("one", "c"))
    ]
    default = {"assert": [{"type": "latency", "threshold": 1000}]}
    assert bring({"tests": tests, "defaultTest": default}) == 0
    assert messages() == [["a", "c"], ["b"]]
    assert [case["eval_id"] for case in cases()] == ["one", "two"]
    assert config()["evaltui"]["criteria"] == {"seconds": 2.0}


@pytest.mark.parametrize("kind", ["latency", "cost"])
def test_a_limit_of_some_tests_is_none_of_the_set(kind, capsys):
    limited = {"vars": {"q": "a"}, "assert": [{"type": kind, "threshold": 300}]}
    assert bring({"prompts": ["{{q}}"], "tests": [limited, {"vars": {"q": "b"}}]}) == 0
    assert "would limit every case, and other tests have no such limit" in capsys.readouterr().err
    assert not config().get("evaltui", {}).get("criteria")


def test_a_prompt_with_the_history_makes_one_conversation_of_all_tests():
    prompt = "{% for turn in _conversation %}{{turn.input}}{{turn.output}}{% endfor %}User: {{ q }}"
    assert bring({"prompts": [prompt], "tests": [{"vars": {"q": "a"}}, {"vars": {"q": "b"}}]}) == 0
    assert messages() == [["a", "b"]]


def test_scenarios_references_and_files_of_tests_are_read():
    Path("more.csv").write_text(
        "q,__expected,__expected2,__description,__config:__expected2:threshold\nBye,Ciao,rouge-n:Ciao,last,0.5\n"
    )
    Path("more.yaml").write_text("- vars: {q: Yes}\n- vars: {q: 2026-01-02}\n")
    suite = {
        "scenarios": [
            {"config": [{"vars": {"n": 1}}, {"vars": {"n": 2}}], "tests": [{"vars": {"q": "N {{n}}"}}]}
        ],
        "prompts": ["{{q}}{{n}}"],
        "tests": ["file://more.csv", "more.yaml"],
        "defaultTest": {"vars": {"n": "!"}, "assert": [{"$ref": "#/assertionTemplates/kind"}]},
        "assertionTemplates": {"kind": {"type": "llm-rubric", "value": "Kind"}},
    }
    assert bring(suite) == 0
    assert messages() == [["Bye!"], ["Yes!"], ["2026-01-02!"], ["N 11"], ["N 22"]]
    assert cases()[0]["eval_id"] == "last"
    assert all(len(case["conversation"][0]["rubrics"]) == 1 for case in cases())
    assert text_of(cases()[0]["conversation"][0]["final_response"]) == "Ciao"


def test_a_table_of_tests_alone_is_a_suite_and_is_updated_by_id(capsys):
    table = "question,__expected\nHi,Hello\nBye,levenshtein: Ciao\n"
    assert bring(table, name="tests.csv") == 0
    assert "tests.csv:3: assert[0]: not taken: levenshtein" in capsys.readouterr().err
    assert messages() == [["Hi"], ["Bye"]]
    assert bring(table.replace("Hello", "Hi!"), name="tests.csv") == 0
    assert "2 cases: 1 changed, 1 unchanged" in capsys.readouterr().out


def called(*tools):
    return {"type": "trajectory:tool-used", "value": [*tools]}


def with_args(mode, **more):
    return {"type": "trajectory:tool-args-match", "value": {**FIND, "mode": mode, **more}}


SUBSET = {"tool": "find", "arg": "*", "match": "subset"}
# The assertions of two turns of a case; its rules, and reasons why one is less strict than it says.
TWO_TURNS = {
    "any and some arguments": (called("find"), with_args("partial"), [SUBSET], []),
    "some and any arguments": (with_args("partial"), called("find"), [SUBSET], []),
    "any and all arguments": (
        called("find"),
        with_args("exact"),
        [SUBSET],
        ["further arguments of find pass"],
    ),
    "some and all arguments": (
        with_args("partial"),
        with_args("exact"),
        [SUBSET],
        ["further arguments of find pass"],
    ),
    "an ignored argument": (
        with_args("exact", ignore=["at"]),
        with_args("exact"),
        [{"tool": "find", "arg": "at", "match": "ignore"}],
        ["at of find is not compared: another assertion ignores it"],
    ),
    "other tools": (called("book"), with_args("exact"), [{**ANY, "tool": "book"}], []),
    "lists": (
        called("book"),
        with_args("partial", args={"ids": [1]}),
        [{**ANY, "tool": "book"}, SUBSET],
        ["lists may"],
    ),
}


@pytest.mark.parametrize("name", TWO_TURNS)
def test_a_rule_for_a_turn_takes_no_check_from_another_silently(name, capsys):
    first, second, rules, reasons = TWO_TURNS[name]
    tests = [
        {"vars": {"q": "Hello"}, "metadata": {"conversationId": "c"}, "assert": [assertion]}
        for assertion in (first, second)
    ]
    assert bring({"tests": tests}) == 0
    assert config()["evaltui"]["rules"] == [{**rule, "set": "s", "case": "c"} for rule in rules]
    noted = [
        line
        for line in capsys.readouterr().err.splitlines()
        if ".assert[" in line and "match type" not in line
    ]
    assert [reason in line for reason, line in zip(reasons, noted, strict=True)] == [True] * len(reasons)


def test_checks_that_change_in_the_file_are_replaced_and_own_ones_stay(capsys):
    def suite(*assertions):
        return {"tests": [{"vars": {"q": "Hello"}, "description": "a", "assert": [*assertions]}]}

    foo, bar = ({"type": "contains", "value": value} for value in ("foo", "bar"))
    assert bring(suite(foo, called("find"))) == 0
    own = {"contains": ["mine"], "set": "s", "case": "a"}
    data = config()
    data["evaltui"]["answers"].append(own)
    Path("test_config.json").write_text(json.dumps(data))
    capsys.readouterr()
    assert bring(suite(bar, with_args("exact"))) == 0
    assert "tags, rules or checks changed: a" in capsys.readouterr().out
    block = config()["evaltui"]
    assert block["answers"] == [own, {"regex": "bar", "turn": 0, "set": "s", "case": "a"}]
    assert "rules" not in block
    assert bring(suite(bar, with_args("exact"))) == 0
    assert "checks changed" not in capsys.readouterr().out
    assert bring(suite()) == 0
    assert config()["evaltui"]["answers"] == [own]


def test_tables_have_thresholds_and_short_forms_of_their_own():
    assert bring("q,__expected,__expected2\nHello,contains:hi,similar: Hi you\n", name="tests.csv") == 0
    assert config()["criteria"] == {"response_match_score": 0.8}
    assert config()["evaltui"]["answers"][0]["regex"] == "hi"


def test_a_rubric_must_be_judged_in_its_case_and_only_there(monkeypatch, capsys):
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    text = {"type": "contains", "value": "Hello"}
    tests = [
        {"vars": {"q": "one"}, "assert": [text, {"type": "llm-rubric", "value": "Polite"}]},
        {"vars": {"q": "two"}, "assert": [text]},
    ]
    assert bring({"tests": tests}) == 0
    Path("agent.py").write_text("def root_agent(message, session):\n    return 'Hello'\n")
    call("run", ".", "--report", "json=report.json")
    report = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert [case["status"] for case in report["cases"]] == ["NOT_EVALUATED", "PASSED"]


def test_criteria_of_the_config_stay_and_are_named(capsys):
    Path("test_config.json").write_text('{"criteria": {"response_match_score": 0.4}}')
    tests = [{"vars": {"q": "Hello"}, "assert": [{"type": "rouge-n", "value": "Hi"}]}]
    assert bring({"tests": tests}) == 0
    assert config()["criteria"] == {"response_match_score": 0.4}
    assert config()["evaltui"].keys() == {"imports"}
    line = (
        "criteria.response_match_score: not taken: the file asks for 0.75, the config has another criterion"
    )
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tests: [", "promptfooconfig.yaml:1: not valid YAML"),
        ("a: 1", "not a promptfoo config: it has no tests"),
        ("tests: []", "no test is a case"),
        ("tests: [{vars: {}}]", "no test is a case: no message of the user"),
        ("tests: file://none.csv", "none.csv: no such file"),
    ],
)
def test_a_suite_without_cases_is_refused(text, error, capsys):
    assert bring(text) == 2
    assert error in capsys.readouterr().err
