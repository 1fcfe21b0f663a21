"""The cases pane: the tree of sets, cases and turns."""
