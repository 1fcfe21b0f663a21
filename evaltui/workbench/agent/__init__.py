"""The agent: its state, and what becomes of it when files change."""
