"""The metrics that a judge decides: prompts, what its answers mean, and the vote. Who is asked comes from
outside."""
