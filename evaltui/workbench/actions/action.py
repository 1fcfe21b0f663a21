"""What can be done is an action: a name, keys, where they work, and why not, if not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from evaltui.workbench.state import READ_ONLY
from evaltui.workbench.workbench import Workbench


class Scope(StrEnum):
    """Where an action's keys work. What is focused comes first, `MAIN` after it; `HELP` stands alone."""

    MAIN = "everywhere"
    CASES = "in the list of cases"
    START = "at the start"
    CASE = "in the case"
    RESULT = "in the result"
    TRACE = "in the trace"
    CONSOLE = "in the console"
    RECENT_RUNS = "in the last runs"
    INSPECTOR = "in the inspector"
    CHAT = "in the chat"
    MESSAGE = "in the message"
    FILTER = "in the filter"
    HELP = "in this help"
    DETAILS = "in the details"
    JUMP = "while a pane is chosen"
    CHOOSER = "in the list of agents"
    FIELD = "in a field of one line"
    TEXT = "in a text"
    PROMPT = "in a question"
    FORM = "in a form"
    CRITERIA = "in the criteria"
    CRITERIA_EFFECT = "beside the criteria"
    VERSIONS = "between two versions"
    LEAVING = "while quitting"
    ACCEPT = "while accepting"
    RUNS = "in the list of runs"
    SESSIONS = "in the list of sessions"
    COMPARISON = "in a comparison"
    MATRIX = "in a matrix"

    @property
    def label(self) -> str:
        """What the place is called."""
        return self.name.replace("_", " ").capitalize()


# A text field takes every letter, and what lies over the screen takes every key.
_ALONE = frozenset(
    {
        Scope.FILTER,
        Scope.HELP,
        Scope.DETAILS,
        Scope.JUMP,
        Scope.CHOOSER,
        Scope.FIELD,
        Scope.TEXT,
        Scope.MESSAGE,
        Scope.PROMPT,
        Scope.FORM,
        Scope.CRITERIA,
        Scope.CRITERIA_EFFECT,
        Scope.VERSIONS,
        Scope.LEAVING,
        Scope.ACCEPT,
        Scope.RUNS,
        Scope.SESSIONS,
        Scope.COMPARISON,
        Scope.MATRIX,
    }
)


def chain_of(scope: Scope) -> tuple[Scope, ...]:
    """Where keys are looked for while the focus is in `scope`, from the inside out."""
    return (scope,) if scope in _ALONE else (scope, Scope.MAIN)


FOCUS_CHAINS = tuple(chain_of(scope) for scope in Scope if scope is not Scope.MAIN)


_TOPICS = {
    Scope.CASES: "cases",
    Scope.CASE: "cases",
    Scope.FIELD: "cases",
    Scope.TEXT: "cases",
    Scope.VERSIONS: "cases",
    Scope.RESULT: "results",
    Scope.TRACE: "results",
    Scope.INSPECTOR: "results",
    Scope.ACCEPT: "results",
    Scope.RUNS: "results",
    Scope.SESSIONS: "traces",
    Scope.COMPARISON: "results",
    Scope.MATRIX: "results",
    Scope.DETAILS: "results",
    Scope.CHAT: "chat",
    Scope.MESSAGE: "chat",
    Scope.CRITERIA: "criteria",
    Scope.CRITERIA_EFFECT: "criteria",
    Scope.CHOOSER: "agents",
}


def topic_of(scope: Scope) -> str:
    """The page of the guide about a place, by its name in `evaltui.files.guide`."""
    return _TOPICS.get(scope, "workbench")


Refusal = Callable[[Workbench], str | None]


def not_read(workbench: Workbench) -> str | None:
    """Refuses as long as the eval sets have not been read."""
    return "Loading eval sets…" if workbench.sets.workspace is None else None


def _never(_: Workbench) -> str | None:
    return None


@dataclass(frozen=True)
class Action:
    """Something that can be done, under its name and keys."""

    id: str
    title: str
    """An imperative of at most four words; ends in `…` where a dialog follows."""
    help: str
    """One line with the details."""
    keys: tuple[str, ...]
    where: tuple[Scope, ...] = (Scope.MAIN,)
    """Where its keys work."""
    do: Callable[[Workbench], None] | None = None
    """Does it; None where the screen does, as its own `action_<id>`."""
    refusal: Refusal = _never
    """Why it cannot be done now, as a sentence; None where it can."""
    rank: int | None = None
    """Its place in the footer, the smallest first, as long as there is room and nothing refuses it; None for
    actions that are not shown there."""
    footer: str = ""
    """One or two words for a line of keys; empty for those of the title."""
    word: Callable[[Workbench], str] | None = None
    """The footer's words of now, for an action whose effect depends on the state."""
    acts: bool = False
    """Whether it edits, writes, runs, chats, listens or opens an editor: a read-only workbench refuses it."""

    @property
    def is_move(self) -> bool:
        """Whether it goes about in every list."""
        return {*LISTS} <= {*self.where}

    @property
    def short(self) -> str:
        """One or two words for a line of keys."""
        return self.footer or self.title[0].lower() + self.title[1:].rstrip("…")

    def footer_word(self, workbench: Workbench) -> str:
        return self.word(workbench) if self.word else self.short


def action(
    id: str,
    title: str,
    help: str,
    *keys: str,
    where: tuple[Scope, ...] = (Scope.MAIN,),
    do: Callable[[Workbench], None] | None = None,
    refusal: Refusal = _never,
    rank: int | None = None,
    footer: str = "",
    word: Callable[[Workbench], str] | None = None,
    acts: bool = False,
) -> Action:
    """An entry of the registry: its keys follow its title and help."""
    refusal = _unless_read_only(refusal) if acts else refusal
    return Action(id, title, help, keys, where, do, refusal, rank, footer, word, acts)


def _unless_read_only(refusal: Refusal) -> Refusal:
    return lambda workbench: READ_ONLY if workbench.read_only else refusal(workbench)


LISTS = (
    Scope.CASES,
    Scope.START,
    Scope.CASE,
    Scope.RESULT,
    Scope.TRACE,
    Scope.CONSOLE,
    Scope.RECENT_RUNS,
    Scope.CHAT,
    Scope.INSPECTOR,
    Scope.DETAILS,
    Scope.CHOOSER,
    Scope.RUNS,
    Scope.SESSIONS,
    Scope.COMPARISON,
    Scope.MATRIX,
)
