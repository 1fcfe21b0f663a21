"""Answers shortly."""


def root_agent(message, session):
    return "Yes, it is open." if "open" in message else "No."
