"""Agents at work, in child processes."""
