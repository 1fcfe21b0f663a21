"""The rows of a case."""
