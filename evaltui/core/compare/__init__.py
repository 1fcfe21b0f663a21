"""Differences between expected and actual, and between two runs."""
