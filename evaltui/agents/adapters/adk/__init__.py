"""The way in for google-adk."""
