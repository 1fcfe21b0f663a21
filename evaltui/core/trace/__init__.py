"""Trace of a case as a tree of spans: which span is inside which, from when to when."""
