"""The runs that are stored."""
