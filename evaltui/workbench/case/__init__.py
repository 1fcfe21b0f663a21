"""The selected case and what edits it."""
