"""What happened in a case, and sessions that are received."""
