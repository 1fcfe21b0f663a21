"""Files that are open, saved and recovered."""
