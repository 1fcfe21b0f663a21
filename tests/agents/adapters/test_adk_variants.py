"""What a variant changes of agents of google-adk and of other frameworks."""

from __future__ import annotations

import pytest

from evaltui.agents.loading import change_agent
from evaltui.agents.variants import AppliedChanges, VariantError
from evaltui.core.model.variants import Change, Variant

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk


@pytest.fixture
def tree():
    """A root with a sub-agent that has its model, an agent as a tool, and one with a model object."""
    from google.adk.agents import LlmAgent
    from google.adk.models import Gemini
    from google.adk.tools.agent_tool import AgentTool

    adder = LlmAgent(name="adder", model="gemini-a", instruction="Add.")
    writer = LlmAgent(name="writer", instruction="Write.")
    held = LlmAgent(name="held", model=Gemini(model="gemini-a"), instruction="Hold.")
    return LlmAgent(
        name="root",
        model="gemini-a",
        instruction="Greet.",
        sub_agents=[writer, held],
        tools=[AgentTool(adder)],
    )


def change(found, framework="adk", **changes):
    """What was changed: `what`, `old` and `new`."""
    pairs = ((key.replace("__", "."), value) for key, value in changes.items())
    applied = AppliedChanges(Variant("v", tuple(Change(key, value) for key, value in pairs)), [])
    change_agent(applied, found, framework)
    return [(one["what"], one["old"], one["new"]) for one in applied.done]


def test_a_model_for_all_and_for_one(tree):
    assert change(tree, model="gemini-b", model__writer="gemini-c") == [
        ("root.model", "gemini-a", "gemini-b"),
        ("held.model", "gemini-a", "gemini-b"),
        ("adder.model", "gemini-a", "gemini-b"),
        ("writer.model", "gemini-b", "gemini-c"),
    ]
    writer, held = tree.sub_agents
    assert (tree.model, writer.model, held.model.model) == ("gemini-b", "gemini-c", "gemini-b")
    assert type(held.model).__name__ == "Gemini"


def test_an_app_is_changed_by_its_root_agent(tree):
    from google.adk.apps import App

    assert change(App(name="app", root_agent=tree), instruction="Be short.") == [
        ("root.instruction", "Greet.", "Be short.")
    ]


def test_fields_of_the_generation_config_nested_ones_too(tree):
    done = change(tree, config__temperature=0, config__thinking_config__thinking_budget=0)
    assert ("writer.config.temperature", "not set", "0.0") in done
    assert len(done) == 8
    config = tree.generate_content_config
    assert (config.temperature, config.thinking_config.thinking_budget) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model__wrter": "gemini-b"}, "model.wrter: no LLM agent 'wrter'. Did you mean writer?"),
        ({"model__x": "gemini-b"}, "LLM agents: root, writer, held, adder"),
        ({"model": "gemini-a"}, "changes nothing: root.model is gemini-a already"),
        ({"model": "no-such-model"}, "model=no-such-model: google-adk: Model no-such-model not found"),
        ({"config__temprature": 1}, "has no temprature. Did you mean temperature?"),
        ({"config__qqq": 1}, "enable_enhanced_civic_answers and "),
        ({"config__temperature": "hot"}, 'config.temperature is "hot": Input should be a valid number'),
        ({"config__tools": []}, "config.tools: tools are those of the agent"),
        ({"instruction": "Greet."}, "changes nothing: root.instruction is Greet. already"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tree, changes, why):
    with pytest.raises(VariantError) as refused:
        change(tree, **changes)
    assert why in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("framework", ["openai-agents", "pydantic-ai", "langgraph", ""])
def test_agents_of_others_take_other_code_and_environments_only(framework):
    with pytest.raises(VariantError) as refused:
        change(object(), framework, config__temperature=0)
    what = f"an agent of {framework}" if framework else "a function"
    assert f"config.temperature cannot be changed in {what}, only env, git and agent can" in str(
        refused.value
    )


@pytest.mark.thorough
def test_a_name_that_only_litellm_knows_keeps_what_its_model_object_has():
    pytest.importorskip("litellm")
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm

    model = LiteLlm(model="openai/small", api_base="http://127.0.0.1:9", api_key="k")
    agent = LlmAgent(name="desk", model=model)
    assert change(agent, model="openai/big") == [("desk.model", "openai/small", "openai/big")]
    assert agent.model.model == "openai/big"
    assert agent.model._additional_args["api_base"] == "http://127.0.0.1:9"
    # The object of the agent's module may be shared.
    assert model.model == "openai/small"
