"""What the result pane says, as lines of text with roles: no widget, no key, no colour."""
