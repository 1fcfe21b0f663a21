"""Models that answered: the version that a response names, and the requested model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY, NOT_REPORTED
from evaltui.core.model.events import SCRIPTED_PREFIX
from evaltui.core.model.spending import Payer

# `-001`, `-preview-09-2025`, `@20250514`, `-2024-08-06`; behind a digit, as in `claude-opus-4`, a number of
# one or two digits is the name of another model: `claude-opus-4-5`.
_VERSION = re.compile(r"(?:(?:(?<!\d)[-@:]\d{1,2}|[-@:](?:\d{3,}|v\d+|preview|exp|latest))(?:[-:.]\d+)*)+")
_ANY_VERSION = "-latest"


def is_other_model(model: str, version: str) -> bool:
    """Whether two names are of different models, as far as names tell.

    Names are of the same model where they are equal, without what stands before the last slash, or where one
    adds to the other only words for a version: `preview`, `exp`, `latest`, and numbers. A name that ends in
    `-latest` asks for any model. A name that is "" is unknown, and no other model, as is a stand-in.
    """
    if not model or not version or model.startswith(SCRIPTED_PREFIX):
        return False
    names = sorted((plain_name(model), plain_name(version)), key=len)
    if names[0] == names[1] or any(name.endswith(_ANY_VERSION) for name in names):
        return False
    return not (names[1].startswith(names[0]) and _VERSION.fullmatch(names[1], len(names[0])))


def plain_name(name: str) -> str:
    """`gemini-2.5-flash` for `models/gemini-2.5-flash`."""
    return name.rpartition("/")[2].lower()


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Calls that one version of a model answered, in a repeat of a case."""

    payer: Payer
    model: str
    """The requested model; "" where it is unknown."""
    version: str
    """The model that the responses name."""
    metric: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """The metric of a judge; "" for other payers."""
    calls: int = 1
    replayed: int = 0
    """Number of these calls that a recording answered."""
    turn: int | None = None
    """Turn of the first live call, else of the first call, from 0; None where it is unknown."""
    call: int = 1
    """Number of that call in its turn for its payer, from 1; for a judge, the number of the vote."""
    repeat: int = field(default=0, metadata=NOT_REPORTED)
    """Number of the repeat, from 0."""

    @property
    def live(self) -> int:
        """Number of calls that a model answered in this run."""
        return self.calls - self.replayed

    @property
    def is_other(self) -> bool:
        """Whether another model than the requested one answered."""
        return is_other_model(self.model, self.version)

    def __add__(self, later: ServedModel) -> ServedModel:
        """Adds later calls that the same version answered."""
        first = self if self.live or not later.live else later
        return replace(first, calls=self.calls + later.calls, replayed=self.replayed + later.replayed)


def served_models(calls: Iterable[ServedModel]) -> tuple[ServedModel, ...]:
    """The sums of calls by payer, metric, model and version, in the order in which they first answered."""
    by_key: dict[tuple[str, ...], ServedModel] = {}
    for call in calls:
        key = call.payer, call.metric, call.model, call.version
        by_key[key] = by_key[key] + call if key in by_key else call
    return tuple(by_key.values())


@dataclass(frozen=True, slots=True)
class ServedChange:
    """Requests for a model that different models answered in the base and in the candidate."""

    payer: Payer
    model: str
    """The requested model; "" where it is unknown."""
    base: tuple[str, ...]
    """Models that answered in the base, as its responses name them; likewise `candidate`."""
    candidate: tuple[str, ...]
    metric: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """The metric of a judge; "" for other payers."""

    @property
    def is_excuse(self) -> bool:
        """Whether a model answered in the candidate that did not in the base.

        Fewer models may be the result of a shorter conversation.
        """
        return _lacks(self.base, self.candidate)

    @property
    def in_words(self) -> str:
        """`gemini-2.5-flash (judge of safety): gemini-2.5-flash-001 → gemini-3.5-flash-lite`"""
        before = [version for version in self.base if version not in self.candidate] or self.base
        after = [version for version in self.candidate if version not in self.base] or self.candidate
        payer = f"judge of {self.metric}" if self.metric else self.payer
        model = f"{self.model} ({payer})" if self.model else payer
        return f"{model}: {' and '.join(before)} → {' and '.join(after)}"


def served_changes(base: Iterable[ServedModel], candidate: Iterable[ServedModel]) -> tuple[ServedChange, ...]:
    """The requests that different models answered on the two sides, where both sides name them.

    A model that only one side requests is no change.
    """
    before, after = _versions(base), _versions(candidate)
    changes = []
    for key, versions in after.items():
        earlier = before.get(key, ())
        if earlier and (_lacks(earlier, versions) or _lacks(versions, earlier)):
            payer, model, metric = key
            changes.append(ServedChange(payer, model, tuple(earlier), tuple(versions), metric))
    return tuple(changes)


def _versions(served: Iterable[ServedModel]) -> dict[tuple[Payer, str, str], dict[str, None]]:
    by_key: dict[tuple[Payer, str, str], dict[str, None]] = {}
    for entry in served:
        by_key.setdefault((entry.payer, entry.model, entry.metric), {})[entry.version] = None
    return by_key


def _lacks(versions: Collection[str], others: Iterable[str]) -> bool:
    """Whether one of `others` is a version of another model than all of `versions`."""
    return any(all(is_other_model(version, other) for version in versions) for other in others)
