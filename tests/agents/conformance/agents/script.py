"""What the desk says and does, whatever it is made with: its model's answers and the bodies of its tools."""

import asyncio
import re

USAGE = {"prompt": 100, "cached": 40, "output": 20, "thoughts": 5}
_CALLS = {
    "price": lambda words: [("price", {"order": int(word)}) for word in words],
    "meet": lambda words: [("meet", {"name": word}) for word in words],
    "note": lambda words: [("note", {"item": words[0]})],
    "fail": lambda words: [("fail", {"order": 7})],
    "wait": lambda words: [("wait", {"order": 7})],
    "ask": lambda words: [("ask_other", {"request": "why"})],
    "remove": lambda words: [("remove", {"path": words[0]})],
}


class RateLimitError(Exception):
    """A model refuses because of too many requests."""

    # Told by its name, as that of a library of models.
    __module__ = "openai"


class OutError(Exception):
    """A model fails."""


_refused: set[str] = set()


def answer(said, results, messages, files=0):
    """A text and calls as (name, args): `said` is the last message of the user, `results` what tools
    returned since then as text, `messages` how many of the user the model was sent."""
    if results:
        numbers = [
            number for one in results for number in re.findall(r"\d+\.\d|removed \w|met \w|because", one)
        ]
        return f"results: {', '.join(numbers) or 'done'}", []
    word, *words = said.split() or [""]
    if word in _CALLS:
        return "I look.", _CALLS[word](words)
    if word == "out":
        raise OutError("the model is out")
    if word == "busy" and said not in _refused:
        _refused.add(said)
        raise RateLimitError("too many requests")
    return f"message {messages}" + (f" with {files} files" if files else ""), []


def priced(order):
    return {"price": order + 0.5}


def price(order: int) -> dict[str, float]:
    """The price of an order."""
    return priced(order)


_here = []


async def meet(name: str) -> str:
    """Returns when another call is running, too."""
    _here.append(name)
    async with asyncio.timeout(10):
        while len(_here) % 2:
            await asyncio.sleep(0.01)
    return f"met {name}"


def fail(order: int) -> str:
    """Fails."""
    raise KeyError("till")


async def wait(order: int) -> str:
    """Waits."""
    await asyncio.sleep(1000)


def remove(path: str) -> str:
    """Removes a file."""
    return f"removed {path}"
