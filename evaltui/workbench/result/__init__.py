"""Results of cases, and whether they are current."""
