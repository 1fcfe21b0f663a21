"""Traces of our own: events as spans of OpenTelemetry, and OTLP as JSON."""
