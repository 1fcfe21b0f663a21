"""Pure functions and plain data for eval sets, metrics and results; no file, no process, no screen."""
