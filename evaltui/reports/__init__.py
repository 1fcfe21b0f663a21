"""Reports of a run: each module writes a format."""
