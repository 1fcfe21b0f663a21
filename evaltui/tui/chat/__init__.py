"""The chat pane: the conversation with the agent."""
