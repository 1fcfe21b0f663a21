"""Recordings of models' answers and tools' results, for repeating a run without calls."""
