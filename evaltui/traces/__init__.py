"""Recorded traces of agents: files in many formats to spans, spans to conversations with events."""
