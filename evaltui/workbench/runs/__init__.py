"""Running cases, and the runs that are stored."""
