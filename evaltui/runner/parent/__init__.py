"""The side of evaltui's own process: starts hosts, hands work to them, and takes what they report."""
