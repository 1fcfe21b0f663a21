"""The way in for our own small agent."""
