"""Models of eval data: eval sets, cases, configs, events and results."""
