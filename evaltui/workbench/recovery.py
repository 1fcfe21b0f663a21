"""Unsaved edits of an earlier sitting that did not end in order: restored, thrown away, or kept for later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaltui.files.journal import Recovered
from evaltui.files.saving import Source, fingerprint
from evaltui.workbench.editing import Editing

# The labels that say best what it was about.
_MOST_LABELS = 3


@dataclass(frozen=True)
class Offer:
    """What one file has to restore. `labels` are the last things done, the latest first, each once."""

    recovered: Recovered
    labels: tuple[str, ...]

    @classmethod
    def of(cls, recovered: Recovered) -> Offer:
        labels = dict.fromkeys(step.label for step in reversed(recovered.steps))
        return cls(recovered, tuple(labels)[:_MOST_LABELS])

    @property
    def name(self) -> str:
        return self.recovered.path.name

    @property
    def edits(self) -> int:
        return len(self.recovered.steps)

    @property
    def file(self) -> str:
        """What has become of the file, in words."""
        if self.recovered.base_text is None:
            kept = "/".join(self.recovered.journal.parts[-3:])
            return (
                "cannot recover: the file changed since and its old text is not stored; "
                f"your text is in {kept} until you discard it"
            )
        if self.recovered.matches:
            return "file unchanged"
        if self.recovered.path.exists():
            return "file changed since: both are merged, conflicts are shown"
        return "file deleted since: a save creates it again"


class Recovery:
    """The offers that are not settled. What is thrown away is gone only with `finish`."""

    def __init__(self, editing: Editing, found: list[Recovered], say: Callable[[str], None]) -> None:
        self._editing = editing
        self._say = say
        # The latest first.
        self.offers = [Offer.of(one) for one in sorted(found, key=lambda one: one.when, reverse=True)]
        self.thrown_away: set[int] = set()
        self.restored: set[int] = set()

    @property
    def open(self) -> int:
        """How many are neither restored nor to be thrown away."""
        return len(self.offers) - len(self.restored) - len(self.thrown_away)

    async def restore(self, number: int) -> bool:
        """The edits come back as one step that can be undone; the file stays unsaved."""
        recovered = self.offers[number].recovered
        if number in self.restored:
            return False
        if recovered.base_text is None:
            self._say(f"{recovered.path.name} not recovered: the old text is not stored")
            return False
        base = Source(recovered.path, recovered.base_text, fingerprint(recovered.base_text))
        if not await self._editing.restore(base, recovered.text):
            return False
        recovered.discard()
        self.restored.add(number)
        self.thrown_away.discard(number)
        return True

    def throw_away(self, number: int) -> None:
        """Mark it, or take the mark back."""
        if number not in self.restored:
            self.thrown_away ^= {number}

    def finish(self) -> None:
        """Remove what was thrown away; what is still open is offered again at the next start."""
        for number in self.thrown_away:
            try:
                self.offers[number].recovered.discard()
            except OSError as error:
                self._say(f"{self.offers[number].name}: {error}")
        done = {"recovered": len(self.restored), "discarded": len(self.thrown_away)}
        if settled := [f"{count} {what}" for what, count in done.items() if count]:
            self._say(f"Unsaved changes: {', '.join(settled)}")
