"""Costs of model calls: payers, models, tokens and prices."""
