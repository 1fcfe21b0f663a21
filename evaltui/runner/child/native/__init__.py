"""A small agent of our own on google-genai, for samples, tests and those who need no framework."""
