"""The host side: imports and drives an agent in its own Python. What both sides share stands here, too."""
