"""Scoring of cases: metrics over repeats, and what other thresholds would decide."""
