"""The agent: its state, and the reaction when its files change."""
