"""Asks a model of Gemini, which the tests stand in for."""

from evaltui import Agent


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


root_agent = Agent(name="greeter", model="gemini-greeter", instruction="Greet.", tools=[weather])
