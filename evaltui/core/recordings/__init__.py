"""What models answered and tools returned, kept so that a run can be had again without asking them."""
