"""Agents to open, and an agent without cases."""
