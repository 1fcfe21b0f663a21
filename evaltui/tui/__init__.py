"""Everything on screen: the Textual app on top of the workbench."""
