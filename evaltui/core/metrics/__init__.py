"""Metrics: pure functions from expected and actual turns to a `MetricResult`."""
