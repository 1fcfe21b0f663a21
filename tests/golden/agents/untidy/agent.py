"""Has eval sets with all that lint names."""


def root_agent(message, session):
    return message
