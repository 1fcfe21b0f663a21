"""The gaps of eval sets: their search, and their rows."""
