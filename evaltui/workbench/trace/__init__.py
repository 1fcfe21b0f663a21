"""Traces of cases, and received sessions."""
