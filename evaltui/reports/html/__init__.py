"""The report to open in a browser: one file that needs no network, and no scripts to be read."""
