"""Lines, values as text, and words: the texts that reports and screens draw."""
