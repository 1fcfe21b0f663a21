"""Reports of a run: writers only."""
