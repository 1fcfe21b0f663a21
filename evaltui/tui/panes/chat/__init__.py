"""The chat pane: the conversation, and the message that is being written."""
