"""Lines, values as text and words: what reports and screens both draw with."""
