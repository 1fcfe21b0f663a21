"""An action: its name, its keys, the places where they work, and why it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from evaltui.workbench.state import READ_ONLY
from evaltui.workbench.workbench import Workbench


class Scope(StrEnum):
    """Where an action's keys work: its name in the guide, the page about it, and which other keys work there.

    In a pane those of `MAIN` work, too; what lies over the screen takes every key, and a field every letter.
    """

    topic: str
    """The page of the guide about it, by its name in `evaltui.project.guide`."""
    is_pane: bool
    is_field: bool

    def __new__(
        cls, name: str, topic: str = "workbench", kind: Literal["pane", "alone", "field"] = "alone"
    ) -> Scope:
        scope = str.__new__(cls, name)
        scope._value_ = name
        scope.topic = topic
        scope.is_pane = kind == "pane"
        scope.is_field = kind == "field"
        return scope

    MAIN = "everywhere", "workbench", "pane"
    CASES = "in the list of cases", "cases", "pane"
    START = "at the start", "start", "pane"
    CASE = "in the case", "cases", "pane"
    RESULT = "in the result", "results", "pane"
    TRACE = "in the trace", "results", "pane"
    CONSOLE = "in the console", "workbench", "pane"
    RECENT_RUNS = "in the last runs", "results", "pane"
    INSPECTOR = "in the inspector", "results", "pane"
    CHAT = "in the chat", "chat", "pane"
    MESSAGE = "in the message", "chat", "field"
    FILTER = "in the filter", "workbench", "field"
    DETAILS = "in the details", "results"
    CHOOSER = "in the list of agents", "agents"
    FIELD = "in a field of one line", "cases", "field"
    TEXT = "in a text", "cases", "field"
    PROMPT = "in a question", "workbench", "field"
    FORM = "in a form"
    CRITERIA = "in the criteria", "criteria"
    CRITERIA_EFFECT = "beside the criteria", "criteria"
    VERSIONS = "between two versions", "cases"
    LEAVING = "while quitting"
    RUNS = "in the list of runs", "results"
    SESSIONS = "in the list of sessions", "traces"
    COMPARISON = "in a comparison", "results"
    MATRIX = "in a matrix", "variants"
    GAPS = "in the gaps", "results"

    @property
    def label(self) -> str:
        """The place in a heading."""
        return self.name.replace("_", " ").capitalize()


def chain_of(scope: Scope) -> tuple[Scope, ...]:
    """Where keys are looked for while the focus is in `scope`, from the inside out."""
    return (scope, Scope.MAIN) if scope.is_pane else (scope,)


FOCUS_CHAINS = tuple(chain_of(scope) for scope in Scope if scope is not Scope.MAIN)
_LISTS = (
    "cases start case result trace console recent_runs chat inspector details chooser runs sessions "
    "comparison matrix gaps"
)


Refusal = Callable[[Workbench], str | None]
"""Why an action cannot be done now, as a sentence; None where it can."""


def refuse_until_read(workbench: Workbench) -> str | None:
    """Refuses as long as the eval sets have not been read."""
    return "Loading eval sets…" if workbench.sets.workspace is None else None


def no_messages(workbench: Workbench) -> str | None:
    return workbench.chat.refuses_to_rewind()


def no_cases(workbench: Workbench) -> str | None:
    """Refuses as long as no eval set has a case."""
    return None if any(eval_set.cases for eval_set in workbench.sets.listed) else "No cases yet"


@dataclass(frozen=True, eq=False)
class Action:
    """Something that can be done, under its name and keys: a row of a table."""

    id: str
    title: str
    """An imperative of at most four words; ends in `…` where a dialog follows."""
    key_names: str
    """Separated by spaces, as Textual calls them."""
    place_names: str
    """Where its keys work: names of `Scope`, and `lists` for every list."""
    help: str
    """One line with the details."""
    refuses: Refusal | None = None
    do: Callable[[Workbench], object] | None = None
    """Does it; None where the screen does."""
    call: str = ""
    """The screen method without its `action_`, with arguments; "" if it is named after the id."""
    rank: int | None = None
    """Its place in the footer, the smallest first, as long as there is room and nothing refuses it; None for
    actions that are not shown there."""
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    """Places where `rank` is another."""
    refusals: Mapping[str, Refusal | None] = field(default_factory=dict)
    """Places where `refuses` is another."""
    footer: str | Callable[[Workbench], str] = ""
    """One or two words for a line of keys, or those of now; empty for the title."""
    acts: bool = False
    """Whether it edits, writes, runs, chats, listens or opens an editor: a read-only workbench refuses it."""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return (*self.key_names.split(),)

    @cached_property
    def where(self) -> tuple[Scope, ...]:
        """The places where its keys work."""
        names = self.place_names.replace("lists", _LISTS).split()
        return tuple(Scope[name.upper()] for name in names)

    @property
    def method(self) -> str:
        """The method of a screen or a widget that does it."""
        return f"action_{self.call.partition('(')[0] or self.id}"

    @property
    def is_move(self) -> bool:
        """Whether it goes about in every list."""
        return self.place_names.startswith("lists")

    @property
    def place(self) -> str:
        """Where its keys work, in words."""
        return "in every list" if self.is_move else ", ".join(self.where)

    @property
    def short(self) -> str:
        """One or two words for a line of keys."""
        title = self.title[0].lower() + self.title[1:].rstrip("…")
        return self.footer if isinstance(self.footer, str) and self.footer else title

    def footer_word(self, workbench: Workbench) -> str:
        return self.short if isinstance(self.footer, str) else self.footer(workbench)

    def rank_in(self, scope: Scope) -> int | None:
        """Its place in the footer while the focus is in `scope`; None if it is not shown there."""
        return self.ranks.get(scope.name.lower(), self.rank)

    def refusal(self, workbench: Workbench, scope: Scope = Scope.MAIN) -> str | None:
        """Why it cannot be done now while the focus is in `scope`, as a sentence; None where it can."""
        if self.acts and workbench.read_only:
            return READ_ONLY
        refuses = self.refusals.get(scope.name.lower(), self.refuses)
        return refuses(workbench) if refuses else None
