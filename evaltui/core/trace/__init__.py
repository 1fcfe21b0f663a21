"""What happened in a case, as a tree of spans: what ran inside what, from when to when."""
