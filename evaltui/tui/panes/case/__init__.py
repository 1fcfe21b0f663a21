"""The case pane: rows and cursor, the field editor, JSON and other programs."""
