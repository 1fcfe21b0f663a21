"""The trace of a case, and the console with the agent's output."""
