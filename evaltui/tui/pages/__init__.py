"""What panes and screens say, as lines of text with roles: no widget, no key, no colour."""
