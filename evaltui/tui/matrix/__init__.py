"""The variants of an agent beside each other."""
