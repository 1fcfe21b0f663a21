"""Unsaved changes of a session that did not end in order: recovered, discarded, or kept for later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evaltui.documents.recovery import Recovered
from evaltui.text.figures import counted
from evaltui.workbench.workbench import Workbench

# The labels that say best what it was about.
_MOST_LABELS = 3
# Characters of a text from which its first words are shown.
_SHOWN = 500
Choice = Literal["recover", "discard", "later"]


@dataclass(frozen=True)
class Offer:
    """What one file has to restore. `labels` are the last things done, the latest first, each once."""

    recovered: Recovered
    labels: tuple[str, ...]

    @classmethod
    def of(cls, recovered: Recovered) -> Offer:
        labels = dict.fromkeys(reversed(recovered.labels))
        return cls(recovered, tuple(labels)[:_MOST_LABELS])

    @property
    def name(self) -> str:
        return self.recovered.name

    @property
    def changes(self) -> str:
        """`2 edits: rename a to b, delete c`, and the text that was typed and not applied."""
        changes = []
        if edits := len(self.recovered.labels):
            changes.append(f"{counted(edits, 'edit')}: {', '.join(self.labels)}")
        if draft := self.recovered.draft:
            text = " ".join(draft.text[:_SHOWN].split())[:60]
            changes.append(f"1 text not applied in {draft.case or self.name}: {text}")
        return "; ".join(changes)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What can be done with it, the usual first."""
        return ("recover", "later", "discard")

    @property
    def file(self) -> str:
        """What has become of the file, in words."""
        if self.recovered.matches:
            return "file unchanged"
        if self.recovered.path.exists():
            merges = ": both are merged, conflicts are shown" if self.recovered.labels else ""
            return f"file changed since{merges}"
        return "file deleted since: a save creates it again"


class Recovery:
    """The offers, and what is to be done with each; nothing is done before `apply`."""

    def __init__(self, workbench: Workbench, found: list[Recovered]) -> None:
        self._workbench = workbench
        self.offers = [Offer.of(one) for one in sorted(found, key=lambda one: one.when, reverse=True)]
        """The latest first."""
        self.choices: list[Choice] = []
        """What is to be done with each offer. Of several sessions with one file, the latest is recovered."""
        for number, offer in enumerate(self.offers):
            again = any(one.recovered.path == offer.recovered.path for one in self.offers[:number])
            self.choices.append("later" if again else offer.choices[0])
        self._recovered: set[int] = set()

    def step(self, number: int, step: int) -> None:
        """Chooses the next (1) or the previous (-1) for an offer, unless its changes are recovered."""
        if number not in self._recovered:
            choices = self.offers[number].choices
            at = choices.index(self.choices[number])
            self.choices[number] = choices[(at + step) % len(choices)]

    def is_recovered(self, number: int) -> bool:
        return number in self._recovered

    async def apply(self) -> bool:
        """Does what is chosen. False where changes could not be recovered: they are for later then, and
        nothing is discarded yet."""
        wanted = [number for number, choice in enumerate(self.choices) if choice == "recover"]
        failed = [n for n in wanted if n not in self._recovered and not await self._recover(n)]
        for number in failed:
            self.choices[number] = "later"
        if failed:
            return False
        discarded = sum(self._discard(number) for number, one in enumerate(self.choices) if one == "discard")
        done = {"recovered": len(self._recovered), "discarded": discarded}
        if settled := [f"{count} {what}" for what, count in done.items() if count]:
            self._workbench.say(f"Unsaved changes: {', '.join(settled)}")
        return True

    async def _recover(self, number: int) -> bool:
        """Brings the edits back as one step that can be undone, and the text into its field; the file stays
        unsaved."""
        recovered = self.offers[number].recovered
        if not await self._workbench.drafting.restore(recovered):
            return False
        if not self._workbench.editing.recovery_problem:
            recovered.discard()
        self._recovered.add(number)
        return True

    def _discard(self, number: int) -> bool:
        try:
            self.offers[number].recovered.discard()
        except OSError as error:
            self._workbench.say(f"{self.offers[number].name}: {error}")
            return False
        return True
