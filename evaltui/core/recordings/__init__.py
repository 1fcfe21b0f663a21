"""Recordings of models' answers and tools' responses, for repeating a run without asking them."""
