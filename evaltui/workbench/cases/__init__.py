"""The eval sets and the list of their cases."""
