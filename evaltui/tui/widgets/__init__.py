"""Widgets that know neither panes nor the workbench: they draw the lines that they are given."""
