"""The trace of a case."""
