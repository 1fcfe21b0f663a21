"""The process that imports and drives the agent. Nothing outside of this package imports it."""
