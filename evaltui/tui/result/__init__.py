"""The result pane: the verdict, the metrics, and every turn beside its expectations."""
