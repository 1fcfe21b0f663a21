"""Users that a model plays: what they are told, what they answer, and when the conversation is over."""
