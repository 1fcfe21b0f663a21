"""Traces of cases as trees of spans."""
