"""Test files in the form of google-adk's own samples, moved by their import line."""

import json

import pytest

pytest_plugins = ["pytester"]

AGENT = """
from evaltui import events

def root_agent(message, session):
    if "cart" in message:
        customer = session.state.get("customer", "123")
        yield events.tool_call("access_cart_information", {"customer_id": customer})
        yield events.tool_result("access_cart_information", {"items": ["Standard Potting Soil"]})
        yield "you have one bag of Standard Potting Soil in your cart"
    else:
        yield "Hi there! How can I help you today"
"""
GREETING = {
    "query": "hi,",
    "expected_tool_use": [],
    "reference": "Hi there! How can I help you today",
}
CART = {
    "query": "tell me what is in my cart?",
    "expected_tool_use": [{"tool_name": "access_cart_information", "tool_input": {"customer_id": "123"}}],
    "reference": "you have one bag of Standard Potting Soil in your cart",
}
# The ways in which the samples call it.
SUITE = '''
"""Basic evaluation of the customer service agent."""

import os
import pathlib

import pytest
from evaltui.adk import AgentEvaluator

pytest_plugins = ("pytest_asyncio",)


@pytest.fixture(scope="session", autouse=True)
def load_env():
    os.environ["CUSTOMER_SERVICE"] = "tested"


@pytest.mark.asyncio
async def test_eval_simple():
    """Test the agent's basic ability via a session file."""
    await AgentEvaluator.evaluate(
        "customer_service",
        os.path.join(os.path.dirname(__file__), "eval_data/simple.test.json"),
        num_runs=1,
    )


def test_not_awaited():
    AgentEvaluator.evaluate(
        "customer_service",
        str(pathlib.Path(__file__).parent / "eval_data" / "simple.test.json"),
        num_runs=1,
        initial_session_file=str(pathlib.Path(__file__).parent / "sessions" / "123.session.json"),
    )


@pytest.mark.asyncio
async def test_all():
    """Test the agent's basic ability on a few examples."""
    await AgentEvaluator.evaluate(
        agent_module="customer_service",
        eval_dataset_file_path_or_dir=str(pathlib.Path(__file__).parent / "eval_data"),
        num_runs=2,
        print_detailed_results=False,
    )


@pytest.mark.asyncio
async def test_with_a_session():
    """With an initial session, and an agent by its name."""
    await AgentEvaluator.evaluate(
        "customer_service",
        str(pathlib.Path(__file__).parent / "eval_data" / "simple.test.json"),
        initial_session_file=str(pathlib.Path(__file__).parent / "sessions" / "123.session.json"),
    )
'''


@pytest.fixture
def sample(pytester):
    """A project with an agent, and its suite in a folder `eval`, as in google/adk-samples."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\npythonpath = .\n")
    agent = pytester.mkpydir("customer_service")
    (agent / "agent.py").write_text(AGENT)
    suite = pytester.mkpydir("eval")
    (suite / "test_eval.py").write_text(SUITE)
    data, sessions = suite / "eval_data", suite / "sessions"
    data.mkdir()
    sessions.mkdir()
    (data / "simple.test.json").write_text(json.dumps([GREETING, CART]))
    (data / "test_config.json").write_text(
        '{"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}'
    )
    session = {"app_name": "customer_service", "user_id": "u", "state": {"customer": "9"}}
    (sessions / "123.session.json").write_text(json.dumps(session))
    return suite


def test_a_suite_of_the_samples_runs_after_a_change_of_its_import_line(pytester, sample):
    """The initial session makes the agent ask for another customer, which the case does not expect."""
    result = pytester.runpytest_inprocess("eval")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E *CasesFailedError: simple FAILED: *",
            '*customer_id*"123"*→*"9"*',
            "FAILED eval/test_eval.py::test_not_awaited - *",
            "FAILED eval/test_eval.py::test_with_a_session - *",
        ]
    )
