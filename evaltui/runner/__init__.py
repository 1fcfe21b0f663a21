"""Runs cases on agents in child processes."""
