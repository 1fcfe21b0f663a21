"""The eval sets and which of their cases are listed."""
