"""What the desk says and does, whatever it is made with: its model's answers and the bodies of its tools."""

import asyncio
import hashlib
import random
import re
import uuid
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, Field

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
    if said.startswith("plan"):
        return _plan(said, results)
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


_rounds: dict[str, int] = {}


def _plan(said, results):
    """The next random answer to a message; the last one has the results of the tools in it."""
    _rounds[said] = _rounds.get(said, 0) + 1 if results else 0
    choices = random.Random(f"{said} {_rounds[said]}")
    text = choices.choice(["", "I look.", '{"a": 1}', f"ünï {uuid.uuid4().hex[:4]}"])
    if choices.random() < 0.75 ** (_rounds[said] + 1) + 0.1:
        calls = [choices.choice(_PLANNED)(choices) for _ in range(choices.choice([1, 1, 2, 3]))]
        return text, calls
    digest = hashlib.sha256(repr(results).encode()).hexdigest()[:8]
    return choices.choice([f"done {digest}", f"done {digest}", text]), []


_PLANNED = [
    lambda choices: ("price", {"order": choices.choice([7, 7, 7, 8, 8, 8, "x"])}),
    lambda choices: ("give", {"kind": choices.choice(sorted(VALUES))}),
    lambda choices: ("give", {"kind": choices.choice(sorted(VALUES))}),
    lambda choices: ("roll", {"item": choices.choice("ab")}),
    lambda choices: ("tally", {"item": choices.choice("ab")}),
    lambda choices: ("tally", {"item": choices.choice("abc")}),
    lambda choices: ("ask_other", {"request": "why"}),
]


class Order(BaseModel):
    number: int = 7
    at: datetime = datetime(2024, 1, 2, 3, 4, 5)
    note: str | None = None
    paid: int = Field(5, serialization_alias="isPaid")


@dataclass
class Item:
    name: str = "tea"
    order: Order | None = None


VALUES = {
    "model": Order,
    "models": lambda: [Order(), Order(number=8)],
    "dataclass": lambda: Item(order=Order()),
    "in a dict": lambda: {"order": Order(), "none": None},
    "none": lambda: None,
    "empty": lambda: "",
    "no items": list,
    "nothing": dict,
    "tuple": lambda: (1, "a"),
    "bytes": lambda: b"abc",
    "date": lambda: datetime(2024, 1, 2),
    "text": lambda: '{"a": 1}',
    "result": lambda: {"result": {"result": 1}},
    "error": lambda: {"error": "no"},
    "true": lambda: True,
    "whole": lambda: 1.0,
}


def made(kind):
    return VALUES[kind]()


def give(kind: str):
    """Gives a value of a kind."""
    return made(kind)


def token(item):
    return f"{item} {uuid.uuid4().hex[:6]}"


async def roll(item: str) -> str:
    """Returns something else each time."""
    await asyncio.sleep(random.random() / 50)
    return token(item)


async def tallied(state, item):
    """Changes the state; calls side by side end in any order."""
    await asyncio.sleep(random.random() / 50)
    tallies = state.get("tallies")
    if tallies and item == "a":
        # In place.
        tallies.append(token(item))
    else:
        state["tallies"] = [*(tallies or []), token(item)]
        state["noted"] = item
    if item == "c" and hasattr(state, "pop"):
        state.pop("noted")
    return "tallied"


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
