"""The main screen: its panes, the lines around them, and what leads from one to another."""
