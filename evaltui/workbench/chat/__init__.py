"""Talking with the agent, without a screen: what was said, what is shown of it, and the case made of it."""
