"""What a model, or a function that stands for one, answers to a prompt."""

from typing import NamedTuple


class Reply(NamedTuple):
    """A text, and why it says no more, such as `MAX_TOKENS`; "" where it came to its end."""

    text: str
    cut_off: str = ""
