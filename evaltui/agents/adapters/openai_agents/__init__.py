"""The way in for agents of the OpenAI Agents SDK."""
