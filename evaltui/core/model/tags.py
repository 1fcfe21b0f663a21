"""Tags of cases: their syntax, and the tags of the cases of a set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .json_values import indexed_objects, list_at

TAG_PATTERN = r'^[^\s,"#*?-][^\s,"#*?]*$'
"""Pattern of tags that need no quotes in filters and on command lines."""

Tags = Mapping[str, tuple[str, ...]]
"""The tags of the cases of a set by eval id, in written order."""


def tag_problem(tag: str) -> str | None:
    """Why a text is no valid tag, as a sentence; None for a valid one."""
    if re.fullmatch(TAG_PATTERN, tag):
        return None
    if not tag:
        return "must not be empty"
    return 'must have no space, comma, ", #, * or ?, and must not begin with -'


def typed_tags(text: str) -> list[str]:
    """The tags in a text, separated by spaces or commas, each perhaps with a leading `#`."""
    words = (word.removeprefix("#") for word in re.split(r"[\s,]+", text))
    return list(dict.fromkeys(word for word in words if word))


def typed_tags_problem(text: str) -> str | None:
    """Why a text does not consist of valid tags, as a sentence; None for valid ones."""
    problems = ((tag, tag_problem(tag)) for tag in typed_tags(text))
    return next((f"{tag} {problem}" for tag, problem in problems if problem), None)


def tags_in(config: Any, set_id: str) -> dict[str, tuple[str, ...]]:
    """The tags of the cases of a set in parsed JSON of its config; invalid entries are ignored."""
    entries = (
        (entry.get("set"), entry.get("case"), entry.get("tags"))
        for _, entry in indexed_objects(list_at(config, ("evaltui", "tags")))
    )
    return tags_by_case(
        (
            (owner, case, [tag for tag in tags if isinstance(tag, str)])
            for owner, case, tags in entries
            if isinstance(owner, str) and isinstance(case, str) and isinstance(tags, list)
        ),
        set_id,
    )


def tags_by_case(
    entries: Iterable[tuple[str, str, Iterable[str]]], set_id: str
) -> dict[str, tuple[str, ...]]:
    """The tags of the cases of a set, from `(set, case, tags)`; a case may have several entries."""
    by_case: dict[str, dict[str, None]] = {}
    for owner, case, tags in entries:
        if owner == set_id:
            by_case.setdefault(case, {}).update(dict.fromkeys(tags))
    return {case: tuple(tags) for case, tags in by_case.items() if tags}


@dataclass(frozen=True)
class TagChoice:
    """A choice of cases by tags."""

    tagged: tuple[str, ...] = ()
    """Tags of which a case needs all."""
    not_tagged: tuple[str, ...] = ()
    """Tags of which a case must have none."""

    def __bool__(self) -> bool:
        return bool(self.tagged or self.not_tagged)

    def __str__(self) -> str:
        """The choice as command-line options."""
        words = [f"--tag {tag}" for tag in self.tagged] + [f"--not-tag {tag}" for tag in self.not_tagged]
        return " ".join(words)

    def unknown(self, existing: Collection[str]) -> str | None:
        """The first of its tags that is not among `existing`; None where all are."""
        return next((tag for tag in (*self.tagged, *self.not_tagged) if tag not in existing), None)

    def keeps(self, tags: Collection[str]) -> bool:
        """Whether a case with these tags is chosen."""
        return all(tag in tags for tag in self.tagged) and not any(tag in tags for tag in self.not_tagged)
