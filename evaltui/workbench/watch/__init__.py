"""Watch mode: what follows from a save."""
