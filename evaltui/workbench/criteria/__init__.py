"""Metrics and thresholds."""
