"""Runs: selecting, executing, storing, resuming and reading them."""
