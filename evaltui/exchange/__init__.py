"""Test cases of other tools as eval cases, and back: rows and promptfoo suites."""
