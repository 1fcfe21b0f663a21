"""The chat with the agent, without a screen: the conversation, its rows, and saving it as a case."""
