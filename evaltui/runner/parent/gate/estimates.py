"""What a model call will cost, before it is made."""

from __future__ import annotations

from collections import defaultdict, deque

from evaltui.core.model.events import Json
from evaltui.core.model.spending import Tokens

_CHARACTERS_PER_TOKEN = 4
# Tokens, until a model has answered.
_FIRST_OUTPUT = 500.0
# As many of the latest answers as the next one is estimated from.
_LATEST = 100
_QUANTILE = 0.9


class Estimates:
    """By model, of what its calls have cost so far."""

    def __init__(self) -> None:
        self._outputs: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_LATEST))

    def of(self, model: str, size: int) -> float:
        """Tokens of a call with a request of so many characters, its answer included."""
        return size / _CHARACTERS_PER_TOKEN + self._output(model)

    def tokens(self, model: str, size: int) -> Tokens:
        """The same, by kind."""
        return Tokens(input=round(size / _CHARACTERS_PER_TOKEN), output=round(self._output(model)))

    def learn(self, model: str, usage: Json | None) -> None:
        """A call of a model is over."""
        whole, asked = tokens_of(usage), (usage or {}).get("prompt_token_count")
        if whole is not None and isinstance(asked, int):
            self._outputs[model].append(whole - asked)

    def _output(self, model: str) -> float:
        known = sorted(self._outputs[model])
        return known[int(_QUANTILE * (len(known) - 1) + 0.5)] if known else _FIRST_OUTPUT


def tokens_of(usage: Json | None) -> int | None:
    """Tokens in all, of genai's usage metadata; None where they are not known."""
    if not usage:
        return None
    total = usage.get("total_token_count")
    if total is not None:
        return int(total)
    names = ("prompt_token_count", "candidates_token_count", "thoughts_token_count")
    counts = [usage[name] for name in names if usage.get(name) is not None]
    return sum(counts) if counts else None
