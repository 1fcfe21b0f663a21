"""Prompts of judges and simulated users, in text files `<name>.<version>.txt` with `$placeholders`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template

_MIN_MARK_LENGTH = 8


@dataclass(frozen=True)
class Prompt:
    """A prompt; `id` is its name and version, `final_response_match/1`, and changes with its wording."""

    id: str
    template: str

    def fill(self, **values: str) -> str:
        """The prompt with its placeholders replaced; values are inserted unchanged."""
        return Template(self.template).substitute(values)


@cache
def prompt(name: str) -> Prompt:
    """The newest version of a prompt. Raises LookupError for an unknown name."""
    versions = {
        int(version): file
        for file in resources.files(__package__).iterdir()
        for stem, _, version in [file.name.removesuffix(".txt").rpartition(".")]
        if stem == name and version.isdecimal()
    }
    if not versions:
        raise LookupError(f"no prompt {name}")
    newest = max(versions)
    return Prompt(f"{name}/{newest}", versions[newest].read_text(encoding="utf-8"))


def fence(text: str) -> str:
    """A text between two marks that it does not contain: `<text 1a2b3c4d>`.

    The text cannot end its fence, so it cannot pose as part of the prompt. Equal texts have equal marks, so
    that recorded answers can be replayed.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    mark = next(
        (digest[:end] for end in range(_MIN_MARK_LENGTH, len(digest)) if digest[:end] not in text), digest
    )
    return f"<text {mark}>\n{text}\n</text {mark}>"
