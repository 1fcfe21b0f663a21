"""The conversation with the agent."""
