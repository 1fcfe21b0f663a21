"""A case, field by field."""
