"""The case pane: a case, field by field."""
