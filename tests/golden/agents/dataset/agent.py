"""Says what it hears."""


def root_agent(message, session):
    return message
