"""What model calls cost: who asked which model, with how many tokens, at what price."""
