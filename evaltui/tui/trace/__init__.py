"""What happened in a case, and what its agent printed."""
