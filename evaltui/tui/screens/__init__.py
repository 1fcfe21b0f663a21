"""Whole screens, made of panes."""
