"""A small agent framework on google-genai, for samples, tests and users without a framework."""
