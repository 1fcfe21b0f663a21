"""Lands on its other side with every second run of the process."""

import itertools

SIDES = itertools.cycle(["heads", "tails"])


def root_agent(message, session):
    return "edge" if message == "Balance" else next(SIDES)
