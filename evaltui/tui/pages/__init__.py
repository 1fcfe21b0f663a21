"""What the result pane says, as lines of text with tones: no widget, no key, no colour."""
