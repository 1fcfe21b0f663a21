"""The main screen: its panes, the lines around them, and the links between them."""
