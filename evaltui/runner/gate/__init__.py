"""When model calls of a run may begin."""
