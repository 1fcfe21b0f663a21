"""Widgets that depend neither on panes nor on the workbench: they draw lines."""
