import pytest

from evaltui import Rule, ScriptedModel
from evaltui.agents.native.models import ModelRequest
from evaltui.core.model.content import Content, FunctionResponse, Part


def said(role, text):
    return Content(role=role, parts=[Part(text=text)])


def results(*named):
    return Content(
        role="user",
        parts=[
            Part(function_response=FunctionResponse(name=name, response=response)) for name, response in named
        ],
    )


async def answer(rules, *contents):
    response = await ScriptedModel(rules).generate(ModelRequest("", contents, ()), lambda text: None)
    return list(response.parts)


async def reply(rules, *contents):
    (part,) = await answer(rules, *contents)
    return part.text


async def calls(rules, *contents):
    return [(part.function_call.name, part.function_call.args) for part in await answer(rules, *contents)]


async def test_the_first_rule_that_applies_answers():
    rules = [Rule(user="red", reply="1"), Rule(user="blue", reply="2"), Rule(user=".", reply="3")]
    assert await reply(rules, said("user", "deep blue")) == "2"
    assert await reply(rules, said("user", "green")) == "3"


async def test_only_the_last_message_of_the_user_counts():
    rules = [Rule(user="first", reply="old"), Rule(user="second", reply="new")]
    assert await reply(rules, said("user", "first"), said("model", "first"), said("user", "second")) == "new"


async def test_calls_from_groups_of_the_pattern():
    rules = [
        Rule(user=r"(\d+) times (?P<b>\d+)", call=lambda s: ("multiply", {"a": int(s[1]), "b": int(s["b"])}))
    ]
    assert await calls(rules, said("user", "7 times 6")) == [("multiply", {"a": 7, "b": 6})]


async def test_several_calls_at_once():
    rules = [Rule(user="all", call=[("off", {"room": 1}), ("off", {"room": 2})])]
    assert await calls(rules, said("user", "all")) == [("off", {"room": 1}), ("off", {"room": 2})]


async def test_after_a_tool_only_rules_for_its_result_apply():
    rules = [
        Rule(user="x", call=("f", {})),
        Rule(after_tool="g", reply="of g"),
        Rule(after_tool="f", user="y", reply="of f, y"),
        Rule(after_tool="f", reply=lambda s: f"{s.message}: {s.results[-1]['n']}"),
    ]
    asked = said("user", "x")
    assert await reply(rules, asked, results(("f", {"n": 5}))) == "x: 5"
    assert await reply(rules, said("user", "y"), results(("f", {"n": 5}))) == "of f, y"
    assert await reply(rules, asked, results(("f", {}), ("g", {}))) == "of g"


async def test_all_results_of_calls_made_at_once_are_at_hand():
    rules = [Rule(after_tool="f", reply=lambda s: str([result["n"] for result in s.results]))]
    assert await reply(rules, said("user", "x"), results(("f", {"n": 1}), ("f", {"n": 2}))) == "[1, 2]"


async def test_no_rule_for_a_message():
    rules = [Rule(user="red", reply="1"), Rule(after_tool="f", reply="2")]
    with pytest.raises(LookupError) as raised:
        await answer(rules, said("user", "what now?"))
    assert str(raised.value) == 'the scripted model does not know "what now?". It knows "red"'


async def test_of_many_rules_the_first_ones_are_named():
    rules = [Rule(user=f"word {n % 12}", reply="1") for n in range(24)]
    with pytest.raises(LookupError) as raised:
        await answer(rules, said("user", "what now?"))
    named = ", ".join(f'"word {n}"' for n in range(5))
    assert str(raised.value).endswith(f"It knows {named} and 7 more")


@pytest.mark.parametrize(
    ("pattern", "phrase"),
    [
        (r"(?i)^(hello|hi)\b", "hello"),
        (r"(?i)set the (bedroom|living room) to (\d+) degrees", "set the bedroom to 19 degrees"),
        (r"(?P<a>-?\d+) times (?P<b>-?\d+)", "19 times 19"),
        (r"where is order #?(\w+)\?", "where is order a1?"),
        (r"colou?r|shade", "colour"),
        (r"a\.b [xy]", "a.b x"),
        # Too much of a regular expression.
        (r"(?=.*red)(?=.*blue)", r"(?=.*red)(?=.*blue)"),
    ],
)
async def test_a_rule_is_named_by_a_phrase_that_it_answers(pattern, phrase):
    with pytest.raises(LookupError) as raised:
        await answer([Rule(user=pattern, reply="1")], said("user", "@"))
    assert str(raised.value).endswith(f'It knows "{phrase}"')


async def test_no_rule_for_a_tool_result():
    rules = [Rule(user="go", call=("f", {})), Rule(after_tool="g", user="on", reply="1")]
    with pytest.raises(LookupError) as raised:
        await answer(rules, said("user", "go"), results(("f", {})))
    assert str(raised.value) == (
        'the scripted model does not know a result of f after "go". It knows a result of g after "on"'
    )


async def test_a_group_without_a_pattern():
    with pytest.raises(LookupError, match="no group 1: the rule has no `user` pattern"):
        await answer([Rule(after_tool="f", reply=lambda s: s[1])], said("user", "go"), results(("f", {})))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"reply": "x"}, "needs `user`, `after_tool` or both"),
        ({"user": "x"}, "exactly one of `reply` and `call`"),
        ({"user": "x", "reply": "y", "call": ("f", {})}, "exactly one of `reply` and `call`"),
    ],
)
def test_rules_that_make_no_sense_are_refused(fields, why):
    with pytest.raises(ValueError, match=why):
        Rule(**fields)


def test_it_says_that_it_is_a_stand_in():
    assert ScriptedModel([]).name == "scripted model, offline"
