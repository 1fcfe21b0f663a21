"""Metrics that a judge decides: prompts, reading of answers, and votes; the caller provides the judge."""
