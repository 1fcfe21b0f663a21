"""A result: why, the metrics, and every turn beside its expectations."""
