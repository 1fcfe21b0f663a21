"""How far rates, means and differences can be relied on. The guide has the formulas and their sources."""
