"""Which calls and arguments count as the same: alignment, rules."""
