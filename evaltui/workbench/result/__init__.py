"""Results, and whether they are of now."""
