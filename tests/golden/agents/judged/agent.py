"""Answers shortly; a model of Gemini, which the tests stand in for, judges the answers."""

from evaltui import Agent, Rule, ScriptedModel

RULES = [Rule(user="open", reply="Yes, it is open."), Rule(user=".", reply="No.")]

root_agent = Agent(name="judged", model=ScriptedModel(RULES), instruction="Be brief.")
