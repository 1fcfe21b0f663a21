"""Differences between expected and actual, and between one run and another."""
