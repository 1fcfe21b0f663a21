"""The stored runs."""
