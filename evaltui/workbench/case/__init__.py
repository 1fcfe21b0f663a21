"""The selected case and its editing."""
