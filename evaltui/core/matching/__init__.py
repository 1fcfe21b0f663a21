"""Alignment of calls, and rules for arguments that may differ."""
