"""Simulated users: what their model is told, what its answers mean, and which configs there are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from eval_data import make_case
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaltui import EvalCase, EvalConfig
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model import events
from evaltui.core.model.config import SimulatorConfig
from evaltui.core.model.eval_set import ConversationScenario
from evaltui.core.model.events import SIMULATED_USER, Event
from evaltui.core.model.modes import PREBUILT_PERSONAS
from evaltui.core.played_users import PlayedUser, ends_conversation, lines_of, stop_text
from evaltui.core.simulated_users import (
    SimulatedUser,
    describe_persona,
    persona_of,
    prebuilt_personas,
    simulated_user,
    stop_reason,
)

MINE = {
    "id": "IMPATIENT",
    "description": "Somebody in a hurry.",
    "behaviors": [
        {
            "name": "Short",
            "description": "Says little.",
            "behavior_instructions": ["At most ten words.", "End with {{ stop_signal }}."],
            "violation_rubrics": ["More than ten words."],
        }
    ],
}
COMPLETE = "{{ stop_signal }} {{ conversation_plan }} {{ conversation_history }}"


def scenario(**more: Any) -> ConversationScenario:
    return ConversationScenario(starting_prompt="hi", conversation_plan="Ask for a lamp.", **more)


def user(text: str, turn: int = 0) -> Event:
    return Event("user", {"role": "user", "parts": [{"text": text}]}, turn=turn)


def said(agent: str, *parts: dict[str, Any]) -> Event:
    return Event("text", {"role": "model", "parts": list(parts)}, agent=agent, turn=0)


# The config


def test_what_is_not_given_is_as_in_adk():
    config = SimulatorConfig()
    assert (config.type, config.model, config.max_allowed_invocations) == (
        "llm_backed",
        "gemini-2.5-flash",
        20,
    )
    assert (config.custom_instructions, config.include_function_calls) == (None, False)
    assert config.model_configuration == {
        "thinking_config": {"include_thoughts": True, "thinking_budget": 10240}
    }


def test_both_spellings_and_unknown_keys():
    config = EvalConfig.model_validate(
        {
            "userSimulatorConfig": {
                "type": None,
                "maxAllowedInvocations": 3,
                "modelConfiguration": {},
                "mine": 1,
            }
        }
    ).user_simulator_config
    assert config is not None
    assert (config.type, config.max_allowed_invocations, config.model_configuration) == ("llm_backed", 3, {})
    assert config.model_extra == {"mine": 1}


@pytest.mark.parametrize(
    ("given_config", "message"),
    [
        ({"type": "robot"}, "'llm_backed' or 'llm_audio'"),
        (
            {"custom_instructions": "Be nice."},
            "{{ stop_signal }}, {{ conversation_plan }}, {{ conversation_his",
        ),
        (
            {"custom_instructions": COMPLETE.replace("conversation_plan", "plan")},
            "unknown markup {{ plan }}",
        ),
        (
            {"custom_instructions": f"{COMPLETE} {{% if persona %}}x{{% endif %}}"},
            "unknown markup {% if persona %}",
        ),
        (
            {"custom_instructions": f"{COMPLETE} {{{{ persona | upper }}}}"},
            "unknown markup {{ persona | upper }}",
        ),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(given_config, message):
    with pytest.raises(ValidationError, match=re.escape(message)):
        EvalConfig.model_validate({"user_simulator_config": given_config})


def test_a_user_who_is_to_speak_is_not_simulated():
    config = SimulatorConfig.model_validate({"type": "llm_audio", "audio_model": "cloud_tts"})
    assert config.refusal == (
        'user_simulator_config has type "llm_audio", which evaltui does not support; use "type": "llm_backed"'
    )
    assert SimulatorConfig().refusal is None


def test_only_a_scenario_has_a_simulated_user():
    config = EvalConfig.model_validate({"user_simulator_config": {"model": "mine:user"}})
    case = EvalCase.model_validate(make_case("a"))
    assert simulated_user(case, config) is None
    case = EvalCase.model_validate({"eval_id": "a", "conversation_scenario": scenario().model_dump()})
    found = simulated_user(case, config)
    assert found is not None
    assert found.config.model == "mine:user"
    assert found.played.model == "mine:user"


@pytest.mark.parametrize("more", [{}, {"user_persona": "NOVICE"}])
def test_a_host_gets_it_as_json(more):
    played = SimulatedUser(scenario(**more), SimulatorConfig(model="mine:user")).played
    assert PlayedUser.from_json(json.loads(json.dumps(played.to_json()))) == played


# What the model is told


def played(given: ConversationScenario, custom: str | None = None) -> PlayedUser:
    return SimulatedUser(given, SimulatorConfig(custom_instructions=custom)).played


def instructions(given: ConversationScenario, history: list[str], custom: str | None = None) -> str:
    return played(given, custom).prompt(history)


def test_the_prompt_has_plan_conversation_and_stop_signal():
    prompt = instructions(scenario(), ["user: hi", "clerk: What is it?"])
    assert "$" not in prompt
    assert "Ask for a lamp." in prompt
    assert "user: hi\n\nclerk: What is it?" in prompt
    assert "</finished>" in prompt
    assert played(scenario()).prompt_id == "simulated_user/1"


@given(st.text(), st.text())
def test_foreign_text_is_inserted_as_it_is(plan, line):
    prompt = instructions(
        ConversationScenario(starting_prompt="hi", conversation_plan=plan), [f"clerk: {line}"]
    )
    assert plan in prompt
    assert line in prompt


@pytest.mark.parametrize("name", PREBUILT_PERSONAS)
def test_a_persona_by_name(name):
    persona = persona_of(scenario(user_persona=name))
    assert persona is not None
    assert persona.id == name
    assert all(one.behavior_instructions and one.violation_rubrics for one in persona.behaviors)
    prompt = instructions(scenario(user_persona=name), [])
    for behavior in persona.behaviors:
        assert behavior.name in prompt
    assert "{{" not in prompt


def test_every_name_that_a_scenario_may_use_is_a_persona():
    assert set(prebuilt_personas()) == set(PREBUILT_PERSONAS)


def test_own_personas():
    prompt = instructions(scenario(user_persona=MINE), [])
    assert "Somebody in a hurry." in prompt
    assert "- At most ten words.\n- End with </finished>.\n" in prompt
    # By these a judge rates the user; to the user they are nothing to do.
    assert "More than ten words." not in prompt


def test_custom_instructions():
    custom = "Plan: {{conversation_plan}}. So far: {{ conversation_history }}. Stop: {{ stop_signal }}."
    plain = instructions(scenario(), ["user: {{ stop_signal }}"], custom)
    assert plain == "Plan: Ask for a lamp.. So far: user: {{ stop_signal }}. Stop: </finished>."
    assert played(scenario(), custom).prompt_id == "custom_instructions"

    with_persona = f"{COMPLETE} You are {{{{ persona.id }}}}: {{{{ persona.description }}}} {{{{ persona }}}}"
    mine = scenario(user_persona=MINE)
    prompt = instructions(mine, [], with_persona)
    assert "You are IMPATIENT: Somebody in a hurry. Who the user is:" in prompt
    persona = persona_of(mine)
    assert persona is not None
    assert describe_persona(persona) in prompt
    assert instructions(scenario(), [], with_persona).endswith("You are :  ")


def test_custom_instructions_need_a_place_for_the_persona():
    config = SimulatorConfig(custom_instructions=COMPLETE)
    assert SimulatedUser(scenario(), config).refusal is None
    assert SimulatedUser(scenario(user_persona="NOVICE"), config).refusal == (
        "its user is NOVICE, and custom_instructions of user_simulator_config have no place for that: "
        "add {{ persona }} to them"
    )


def test_the_conversation_is_told_without_thoughts_and_calls():
    happened = [
        user("hi"),
        said("clerk", {"text": "hm", "thought": True}, {"text": "One moment."}),
        events.tool_call("find", {"what": "lamp"}, agent="clerk"),
        events.tool_result("find", {"found": 2}),
        Event("text", said("clerk", {"text": "Th"}).content, agent="clerk", data={"partial": True}),
        said("clerk", {"text": "There are two."}),
    ]
    assert lines_of(happened, with_calls=False) == [
        "user: hi",
        "clerk: One moment.",
        "clerk: There are two.",
    ]
    assert lines_of(happened, with_calls=True) == [
        "user: hi",
        "clerk: One moment.",
        'clerk calls the tool find with {"what": "lamp"}',
        'the tool find returns {"found": 2}',
        "clerk: There are two.",
    ]


# What ends it


@pytest.mark.parametrize("message", ["</finished>", "Thanks! </FINISHED>", "x</Finished>y"])
def test_the_stop_signal_ends_it_wherever_it_stands(message):
    assert ends_conversation(message)


def test_other_messages_do_not():
    assert not ends_conversation("I have finished </ finished >")


@pytest.mark.parametrize(
    ("most", "turns", "reached"), [(2, 1, False), (2, 2, True), (0, 0, True), (-1, 999, False)]
)
def test_the_limit(most, turns, reached):
    assert (
        SimulatedUser(scenario(), SimulatorConfig(max_allowed_invocations=most)).played.is_at_limit(turns)
        is reached
    )


def test_what_ended_it_in_words():
    assert stop_text("signal", 4) == "the simulated user ended the conversation after 4 turns"
    assert stop_text("limit", 1) == "stopped at the limit of 1 turn"
    line = Event("console", agent=SIMULATED_USER, data={"source": "x", "text": "over", "stopped": "limit"})
    printed = Event("console", data={"source": "stdout", "text": "hm"})
    assert stop_reason([printed, line]) == "over"
    assert stop_reason([printed]) == ""


def test_what_the_user_asks_its_model_is_none_of_the_agents_work():
    happened = [
        user("hi"),
        Event("text", said("clerk", {"text": "Yes?"}).content, agent="clerk", turn=0, t=0.5),
        Event("model_request", agent=SIMULATED_USER, data={"model": "m"}, turn=0, t=0.6),
        Event("model_response", agent=SIMULATED_USER, duration=2.0, turn=0, t=2.6),
    ]
    (invocation,) = invocations_from_events(happened, app_details=True)
    assert (invocation.duration, invocation.model_duration) == (0.5, 0.0)
    assert invocation.app_details is None or SIMULATED_USER not in invocation.app_details.agent_details
