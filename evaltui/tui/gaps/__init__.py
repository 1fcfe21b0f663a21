"""The gaps of eval sets: changes that were not noticed, coverage, and the current one of them."""
