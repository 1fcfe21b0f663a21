"""What eval data is: eval sets, cases, configs, events and outcomes."""
