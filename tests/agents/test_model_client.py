"""A question to a Gemini model on this machine, or to a function in the agent's folder."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from gemini_server import KEY, Answer, Drop, chunk, drops, fails, malformed, says

from evaltui.agents.model_client import ask
from evaltui.agents.native import gemini as gemini_model
from evaltui.agents.native.gemini import ModelError
from evaltui.core.metrics.judges.judge import RATING


@pytest.fixture(autouse=True)
async def fresh(monkeypatch):
    """Clients belong to the loop of a test; modules of agents to its folder."""
    monkeypatch.setattr(gemini_model, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield
    gemini_model._model_of.cache_clear()
    for name in set(sys.modules) - known:
        if name.split(".")[0] in ("my_agent", "agent"):
            del sys.modules[name]


async def test_everything_that_the_config_says_is_sent_and_functions_are_never_called(gemini, tmp_path):
    gemini.script(says("valid"))
    config = {
        "temperature": 0.25,
        "top_k": 3,
        "max_output_tokens": 99,
        "seed": 7,
        "stop_sequences": ["END"],
        "thinking_config": {"thinking_budget": 0},
        "system_instruction": "Judge.",
        "response_mime_type": "application/json",
        "response_schema": {"type": "OBJECT", "properties": {"verdict": {"type": "STRING"}}},
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "http_options": {"headers": {"x-team": "evals"}},
    }
    assert (await ask("judge-1", "Is it so?", config, tmp_path)).text == "valid"
    (request,) = gemini.requests
    assert (request.model, request.said, request.instruction) == ("judge-1", "Is it so?", "Judge.")
    assert request.headers["x-team"] == "evals"
    sent = request.body["generationConfig"]
    assert (sent["temperature"], sent["topK"], sent["maxOutputTokens"], sent["seed"]) == (0.25, 3, 99, 7)
    assert sent["stopSequences"] == ["END"]
    # The service takes either spelling, and versions of google-genai send either.
    assert list(sent["thinkingConfig"].values()) == [0]
    assert sent["responseMimeType"] == "application/json"
    assert sent["responseSchema"]["properties"]["verdict"]["type"] == "STRING"
    assert request.body["safetySettings"][0]["threshold"] == "BLOCK_NONE"


async def test_the_form_of_the_answer_is_sent_in_its_order(gemini, tmp_path):
    gemini.script(says("{}"))
    config = {"response_mime_type": "application/json", "response_schema": RATING}
    await ask("gemini-judge", "How good?", config, tmp_path)
    sent = gemini.requests[0].body["generationConfig"]["responseSchema"]
    # Versions of google-genai send either spelling.
    order = sent.get("propertyOrdering") or sent["property_ordering"]
    assert order == ["for", "against", "reason", "score"]
    assert sent["properties"]["for"] == {"type": "ARRAY", "items": {"type": "STRING"}}


async def test_without_a_config_nothing_is_asked_for(gemini, tmp_path):
    gemini.script(says("yes"))
    await ask("judge-1", "Is it so?", None, tmp_path)
    body = gemini.requests[0].body
    assert body.pop("contents") == [{"parts": [{"text": "Is it so?"}], "role": "user"}]
    assert not any(body.values())


async def test_thoughts_are_no_answer(gemini, tmp_path):
    gemini.script(says("va", "lid", thought="hm"))
    assert (await ask("judge-1", "?", None, tmp_path)).text == "valid"


@pytest.mark.parametrize(
    "failure", [fails(429, retry_delay="0s"), fails(500), fails(503), drops(), malformed(), Answer([])]
)
async def test_what_may_pass_is_asked_again(gemini, tmp_path, failure):
    gemini.script(failure, says("valid"))
    assert (await ask("judge-1", "?", None, tmp_path)).text == "valid"
    assert len(gemini.requests) == 2


async def test_what_does_not_pass_is_told_with_what_to_do(gemini, tmp_path):
    gemini.script(fails(400, "too long"))
    with pytest.raises(ModelError, match="model 'judge-1' gave no response: 400 INVALID_ARGUMENT: too long"):
        await ask("judge-1", "?", None, tmp_path)
    gemini.script(*[fails(503)] * gemini_model.ATTEMPTS)
    with pytest.raises(ModelError, match=r"\(tried 5 times\).* The service is overloaded"):
        await ask("judge-1", "?", None, tmp_path)


async def test_advice_names_where_the_model_is_set(gemini, tmp_path):
    gemini.models = ["judge-1"]
    with pytest.raises(ModelError) as judge:
        await ask("openai/gpt-4o", "?", None, tmp_path)
    said = str(judge.value)
    assert "openai/gpt-4o is not a Gemini model. Check `judge_model` of the criterion" in said
    assert "whether GOOGLE_GEMINI_BASE_URL=" in said
    settings = "`model` of user_simulator_config", "`model_configuration` of user_simulator_config"
    with pytest.raises(ModelError, match="Check `model` of user_simulator_config for a misspelt"):
        await ask("gemini-gone", "?", None, tmp_path, settings=settings)
    gemini.script(fails(400, "too long"))
    with pytest.raises(ModelError, match=r"refused the request: check `judge_model` of the criterion and"):
        await ask("judge-1", "?", None, tmp_path)


@pytest.mark.parametrize(
    ("error", "keys"),
    [
        ("topP is not supported by this model", "`top_p`"),
        ("Sampling is not supported", "`temperature`, `top_p`"),
    ],
)
async def test_a_refused_parameter_is_named_with_its_setting(gemini, tmp_path, error, keys):
    gemini.script(fails(400, error))
    with pytest.raises(ModelError) as judge:
        await ask("judge-1", "?", {"temperature": 0.5, "top_p": 0.9}, tmp_path)
    assert f"400 INVALID_ARGUMENT: {error}" in str(judge.value)
    assert f"It was sent with {keys} of `judge_model_config` of the criterion." in str(judge.value)


async def test_an_answer_that_is_no_text_says_why(gemini, tmp_path):
    gemini.script(Answer([chunk({"text": "hm", "thought": True}, finishReason="MAX_TOKENS")]))
    with pytest.raises(ModelError, match=r"responded without text \(MAX_TOKENS\)"):
        await ask("judge-1", "?", None, tmp_path)


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"])
async def test_an_answer_that_was_cut_off_is_marked(gemini, tmp_path, reason):
    gemini.script(Answer([chunk({"text": "va"}), chunk({"text": "lid"}, finishReason=reason)]), says("valid"))
    assert (await ask("judge-1", "?", None, tmp_path))[:2] == ("valid", reason)
    assert (await ask("judge-1", "?", None, tmp_path))[:2] == ("valid", "")


async def test_the_key_is_that_of_the_agents_own_environment_file(gemini, tmp_path, monkeypatch):
    # So that it is taken back afterwards.
    monkeypatch.setenv("GOOGLE_API_KEY", "")
    monkeypatch.delenv("GOOGLE_API_KEY")
    with pytest.raises(ValueError, match="Set GOOGLE_API_KEY or GEMINI_API_KEY"):
        await ask("judge-1", "?", None, tmp_path)
    gemini_model._model_of.cache_clear()
    (tmp_path / ".env").write_text(f"GOOGLE_API_KEY={KEY}\n")
    gemini.script(says("valid"))
    assert (await ask("judge-1", "?", None, tmp_path)).text == "valid"


async def test_questions_to_one_model_share_their_connections(gemini, tmp_path):
    gemini.respond = lambda request: says(request.said)
    said = await asyncio.gather(*(ask("judge-1", str(n), None, tmp_path) for n in range(4)))
    assert [one.text for one in said] == ["0", "1", "2", "3"]
    assert gemini_model._model_of.cache_info().misses == 1


JUDGES = """
    import threading

    def plain(prompt):
        return f"{prompt} in {threading.current_thread() is threading.main_thread()}"

    async def waiting(prompt):
        return prompt.upper()

    class Asked:
        async def __call__(self, prompt):
            return prompt * 2

    called = Asked()

    def none(prompt):
        return None

    def raises(prompt):
        raise RuntimeError("judge 500")

    def empty(prompt):
        return next(iter([]))
"""


@pytest.mark.parametrize("place", ["my_agent.judges", "agent.judges"])
async def test_a_function_may_answer_sync_or_async_as_a_callable_too(write_agent, place):
    agent = write_agent("", judges=JUDGES)
    assert (await ask(f"{place}:plain", "so?", None, agent)).text == "so? in False"
    assert (await ask(f"{place}:waiting", "so?", None, agent)).text == "SO?"
    assert (await ask(f"{place}:called", "so?", None, agent)).text == "so?so?"


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("none", TypeError, "my_agent.judges:none returned a NoneType; it must return its answer as a str"),
        ("raises", RuntimeError, "judge 500"),
        ("empty", RuntimeError, "StopIteration was raised"),
        ("noone", ImportError, "has no function noone. Did you mean none"),
    ],
)
async def test_what_a_function_does_wrong_is_raised(write_agent, name, error, said):
    agent = write_agent("", judges=JUDGES)
    with pytest.raises(error, match=said):
        await ask(f"my_agent.judges:{name}", "so?", None, agent)


async def test_a_function_that_hangs_holds_up_no_other(write_agent, monkeypatch):
    release = threading.Event()
    agent = write_agent(
        "",
        judges="""
    release = None

    def slow(prompt):
        release.wait(30)
        return prompt
"""
        + JUDGES,
    )
    assert (await ask("my_agent.judges:waiting", "a", None, agent)).text == "A"
    sys.modules["my_agent.judges"].release = release
    slow = [asyncio.create_task(ask("my_agent.judges:slow", "x", None, agent)) for _ in range(40)]
    try:
        assert (await ask("my_agent.judges:plain", "b", None, agent)).text.startswith("b")
    finally:
        release.set()
    assert [one.text for one in await asyncio.gather(*slow)] == ["x"] * 40


async def test_the_tokens_of_each_attempt_are_told(gemini, tmp_path, monkeypatch):
    monkeypatch.setattr(gemini_model, "FIRST_WAIT", 0.001)
    spent = {"promptTokenCount": 9, "candidatesTokenCount": 4}
    broken = Answer([chunk({"text": "va"}, usageMetadata=spent), Drop()])
    gemini.script(broken, says("valid"))
    reply = await ask("judge-1", "?", None, tmp_path)
    assert [usage["prompt_token_count"] for usage in reply.usages] == [9, 9]
    gemini.script(Answer([chunk({"text": "hm", "thought": True}, usageMetadata=spent)]))
    with pytest.raises(ModelError) as failed:
        await ask("judge-1", "?", None, tmp_path)
    assert [usage["candidates_token_count"] for usage in failed.value.usages] == [4]
