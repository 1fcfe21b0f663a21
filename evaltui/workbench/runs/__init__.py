"""Running cases, and the stored runs."""
