"""Costs of model calls: payer, model, tokens and price."""
