"""What a host loads before it knows which agent it gets, and for agents that ask no model."""

import subprocess
import sys
import textwrap


def loaded(code):
    asked = f"{textwrap.dedent(code)}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return {*done.stdout.split()}


def test_an_agent_that_is_a_function_does_not_wait_for_models():
    modules = loaded("import evaltui.agents.host, evaltui.agents.adapters.function")
    assert not {"pydantic", "google.genai", "google.adk", "rouge_score"} & modules


def test_a_scripted_agent_with_tools_does_not_wait_for_google_genai():
    code = """
        import asyncio
        from evaltui import Agent, Rule, ScriptedModel
        from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
        from evaltui.agents.adapters.native import NativeAdapter

        def double(n: int) -> int:
            return 2 * n

        rules = [Rule(user="4", call=("double", {"n": 4})), Rule(after_tool="double", reply="8")]
        agent = Agent("sums", ScriptedModel(rules), tools=[double])

        async def main():
            adapter, events = NativeAdapter(agent), []
            await adapter.open()
            reporter = Reporter(events.append)
            session = await adapter.new_session(SessionSpec(), reporter)
            with recording(reporter):
                await session.send({"parts": [{"text": "4"}]})
            assert "8" in str(events[-1]), events
            await adapter.close()

        asyncio.run(main())
    """
    assert not {"google.genai", "tenacity"} & loaded(code)
