"""The HTML report: one file without network access, readable without scripts."""
