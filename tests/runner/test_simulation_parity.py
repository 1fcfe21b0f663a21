"""Simulated users beside google-adk's own: the same answers of their model make the same conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("google.adk")
pytest.importorskip("jinja2")

from google.adk.agents import LlmAgent
from google.adk.evaluation.conversation_scenarios import ConversationScenario as AdkScenario
from google.adk.evaluation.eval_config import EvalConfig as AdkConfig
from google.adk.evaluation.eval_set import EvalSet as AdkEvalSet
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.evaluation.simulation import pre_built_personas
from google.adk.evaluation.simulation.llm_backed_user_simulator import (
    LlmBackedUserSimulator,
    LlmBackedUserSimulatorConfig,
)
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from evaltui.agents import simulating
from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.agents.protocol import Reply
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.config import SimulatorConfig
from evaltui.core.model.errors import SimulatedUserError
from evaltui.core.model.eval_set import ConversationScenario
from evaltui.core.played_users import lines_of
from evaltui.core.simulated_users import SimulatedUser, prebuilt_personas

pytestmark = pytest.mark.compat

SAMPLE = Path(__file__).parents[2] / "sample_agents" / "library_desk"
SCENARIO = {"starting_prompt": "hi", "conversation_plan": "Get a lamp."}


class Clerk(BaseLlm):
    """The model of the agent: answers what is said, after a thought."""

    model: str = "clerk"

    async def generate_content_async(self, llm_request, stream=False):
        text = llm_request.contents[-1].parts[-1].text
        parts = [types.Part(text="hm", thought=True), types.Part(text=f"You said {text}.")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


class User(BaseLlm):
    """The model of ADK's simulated user."""

    model: str = "user"
    answers: list[str]

    async def generate_content_async(self, llm_request, stream=False):
        answer = self.answers.pop(0)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=answer)]))


def agent():
    return LlmAgent(name="clerk", model=Clerk(), instruction="Answer.")


async def adks(answers, most):
    """What the user said, why it stopped, and the conversation as the user was told it at the end."""
    config = LlmBackedUserSimulatorConfig(max_allowed_invocations=most)
    simulator = LlmBackedUserSimulator(config=config, conversation_scenario=AdkScenario(**SCENARIO))
    simulator._llm = User(answers=list(answers))
    own, stops, told = simulator.get_next_user_message, [], []

    async def listening(events):
        told.append(simulator._summarize_conversation(events))
        message = await own(events)
        stops.append(message.status.value)
        return message

    simulator.get_next_user_message = listening
    try:
        invocations = await EvaluationGenerator._generate_inferences_from_root_agent(agent(), simulator)
    except RuntimeError:
        return None, "error", told[-1]
    said = [one.user_content.parts[0].text for one in invocations]
    reasons = {"stop_signal_detected": "signal", "turn_limit_reached": "limit"}
    return said, reasons[stops[-1]], told[-1]


async def ours(answers, most, monkeypatch):
    left = list(answers)

    async def ask(*_, **__):
        return Reply(left.pop(0))

    monkeypatch.setattr(simulating, "ask", ask)
    user = SimulatedUser(ConversationScenario(**SCENARIO), SimulatorConfig(max_allowed_invocations=most))
    events, heard = [], []

    def take(event):
        events.append(event)
        heard.append(event)

    reporter = Reporter(take)
    session = await AdkAdapter(agent()).new_session(SessionSpec(), reporter)

    async def say(turn, content):
        reporter.turn = turn
        with recording(reporter):
            reporter.event("user", content)
            with recording(reporter):
                await session.send(content)

    conversation = simulating.Simulation(user.played, reporter, heard, say, Path())
    try:
        await conversation.converse()
    except SimulatedUserError:
        return None, "error", "\n\n".join(lines_of(events, with_calls=False))
    said = [one.user_content.parts[0].text for one in invocations_from_events(events)]
    return said, events[-1].data["stopped"], "\n\n".join(lines_of(events, with_calls=False))


ANSWERS = st.lists(
    st.sampled_from(["a lamp", "  red ", "", "Thanks </finished>", "</FINISHED>", "<finished>"]), min_size=6
)


@settings(suppress_health_check=list(HealthCheck))
@given(answers=ANSWERS, most=st.sampled_from([0, 1, 2, 4]))
async def test_the_same_answers_make_the_same_conversation(answers, most):
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert await ours(answers, most, monkeypatch) == await adks(answers, most)


def test_personas_are_made_of_as_many_behaviours():
    registry = pre_built_personas.get_default_persona_registry()
    adk = {persona.id: len(persona.behaviors) for persona in registry.get_registered_personas()}
    assert {name: len(persona.behaviors) for name, persona in prebuilt_personas().items()} == adk


def test_adk_loads_set_and_config_of_the_sample():
    # It has no such judge and user, and says so when it runs them.
    config = AdkConfig.model_validate_json((SAMPLE / "test_config.json").read_text("utf-8"))
    assert config.user_simulator_config.model == "scripted_people:reader"
    eval_set = AdkEvalSet.model_validate_json((SAMPLE / "desk.evalset.json").read_text("utf-8"))
    assert [case.conversation_scenario is not None for case in eval_set.eval_cases] == [False, True, True]
