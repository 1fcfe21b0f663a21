"""Plain data and pure functions for eval sets, metrics and results, without files, processes or screens."""
