"""References from a config to cases and turns, updated when these change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.model.json_values import indexed_objects, list_at
from evaltui.core.model.modes import TurnMode
from evaltui.core.model.problems import JsonPath
from evaltui.documents.values import append, remove

BLOCK: JsonPath = ("evaltui",)
RULES: JsonPath = ("evaltui", "rules")

# Set id, then eval id.
CaseRef = tuple[str, str]
# The new number of a turn, None for one that is gone.
Renumbering = Callable[[int], int | None]
Entry = Mapping[str, Any]
BlockList = Literal["turns", "rules", "answers", "tags", "meant_so", "imports"]
BLOCK_LISTS: tuple[BlockList, ...] = ("turns", "rules", "answers", "tags", "meant_so")
"""The lists with entries that name a case."""


CopiedReferences = Mapping[BlockList, Sequence[Entry]]
"""The entries that copies of cases need, by list."""
# The lists whose entries may name a case without its set.
_OF_ANY_SET: tuple[BlockList, ...] = ("rules", "answers")


@dataclass(frozen=True)
class References:
    """The marks, rules, checks of answers and tags of a config, with the methods that keep them true."""

    config: Any
    """The parsed JSON of the config; None without a file."""

    def entries(self, name: BlockList) -> Iterator[tuple[int, dict[str, Any]]]:
        """The entries of a list of the `evaltui` block, each with its index."""
        return indexed_objects(list_at(self.config, (*BLOCK, name)))

    # Marks on turns

    def turn_mode(self, case: CaseRef, turn: int) -> TurnMode | None:
        """The mark on a turn, the last one given for it."""
        marks = self._marks_of(case, turn)
        return marks[-1][1].get("mode") if marks else None

    def mark_turn(self, case: CaseRef, turn: int, mode: TurnMode) -> None:
        """Gives a turn this mark in place of any other."""
        if not (marks := self._marks_of(case, turn)):
            self.mark_turns(case, {turn: mode})
            return
        marks[-1][1]["mode"] = mode
        self.remove_entries("turns", [index for index, _ in marks[:-1]])

    def mark_turns(self, case: CaseRef, modes: Mapping[int, TurnMode]) -> None:
        """Gives the turns of a new case their marks."""
        names = {"set": case[0], "case": case[1]}
        self.append_entries("turns", [{**names, "turn": turn, "mode": mode} for turn, mode in modes.items()])

    def unmark_turn(self, case: CaseRef, turn: int, mode: TurnMode) -> None:
        """Takes the marks of one mode from a turn."""
        marks = self._marks_of(case, turn)
        self.remove_entries("turns", [index for index, mark in marks if mark.get("mode") == mode])

    def renumber_turns(self, case: CaseRef, now: Renumbering) -> None:
        """Renumbers the marks of a case, and the checks of its answers, after its turns have moved."""
        for name in BLOCK_LISTS:
            gone: list[int] = []
            for index, entry in self._of_case(name, case):
                if isinstance(turn := entry.get("turn"), int):
                    entry["turn"] = now(turn)
                    if entry["turn"] is None:
                        gone.append(index)
            self.remove_entries(name, gone)

    def _marks_of(self, case: CaseRef, turn: int) -> list[tuple[int, dict[str, Any]]]:
        """The marks of a turn, each with its index."""
        return [
            (index, mark)
            for index, mark in self._of_case("turns", case)
            if mark.get("turn") == turn and not isinstance(mark.get("turn"), bool)
        ]

    # Tags

    def change_tags(self, cases: Sequence[CaseRef], added: Sequence[str], removed: Collection[str]) -> None:
        """Adds and removes tags of cases."""
        of_case: dict[tuple[Any, Any], list[tuple[int, dict[str, Any]]]] = {}
        for index, entry in self.entries("tags"):
            of_case.setdefault((entry.get("set"), entry.get("case")), []).append((index, entry))
        new: list[Entry] = []
        gone: list[int] = []
        for case in cases:
            entries = of_case.get(case, [])
            current = [
                tag for _, entry in entries for tag in list_at(entry, ("tags",)) if isinstance(tag, str)
            ]
            changed = [tag for tag in dict.fromkeys([*current, *added]) if tag not in removed]
            if changed == current:
                continue
            if entries and changed:
                entries[0][1]["tags"] = changed
            elif changed:
                new.append({"set": case[0], "case": case[1], "tags": changed})
            gone += [index for index, _ in entries[bool(changed) :]]
        self.append_entries("tags", new)
        self.remove_entries("tags", gone)

    # Changes that need not be noticed

    def toggle_meant_so(self, change: Entry) -> bool:
        """Marks a change as meant so, or removes its mark; returns whether it is marked then."""
        marked = [index for index, entry in self.entries("meant_so") if entry == change]
        if marked:
            self.remove_entries("meant_so", marked)
        else:
            self.append_entries("meant_so", [change])
        return not marked

    # Files that cases were imported from

    @property
    def _imports(self) -> list[dict[str, Any]]:
        return [entry for _, entry in self.entries("imports")]

    def imported(self, set_id: str, source: str) -> dict[str, Any] | None:
        """The entry of a file that was imported into a set; None where it was not."""
        names = source, set_id
        return next((e for e in self._imports if (e.get("source"), e.get("set")) == names), None)

    def put_import(self, entry: Entry) -> None:
        """Adds the entry of an imported file, or replaces the one of its last import."""
        if (last := self.imported(entry["set"], entry["source"])) is None:
            self.append_entries("imports", [entry])
        else:
            last.update(entry)

    def replace_entries(
        self, name: BlockList, case: CaseRef, is_gone: Callable[[Entry], bool], entries: Sequence[Entry]
    ) -> None:
        """Removes entries of a case, and adds those that it has not, but no second rule for an argument.

        `is_gone` gets an entry without its set and case."""
        names = ("set", "case")
        of_case = self._of_case(name, case)
        bare = [(index, {k: v for k, v in entry.items() if k not in names}) for index, entry in of_case]
        self.remove_entries(name, [index for index, entry in bare if is_gone(entry)])
        present = [_subject(name, entry) for _, entry in self._of_case(name, case)]
        owned = [{**entry, "set": case[0], "case": case[1]} for entry in entries]
        self.append_entries(name, [entry for entry in owned if _subject(name, entry) not in present])

    # Cases and sets that are renamed, moved, copied or deleted

    def rename_set(self, old: str, new: str) -> None:
        for entry in (*(entry for _, _, entry in self._every_entry()), *self._imports):
            if entry.get("set") == old:
                entry["set"] = new

    def move_cases(self, pairs: Sequence[tuple[CaseRef, CaseRef]]) -> None:
        """Follows cases that got another id or set in this config, given as `(before, after)` pairs."""
        pinned = {
            name: [
                {**entry, "set": new[0], "case": new[1]}
                for old, new in pairs
                if old[1] != new[1]
                for entry in self._of_any_set(name, old)
            ]
            for name in _OF_ANY_SET
        }
        after = dict(pairs)
        for _, _, entry in self._every_entry():
            owner, case = entry.get("set"), entry.get("case")
            if isinstance(owner, str) and isinstance(case, str) and (owner, case) in after:
                entry["set"], entry["case"] = after[owner, case]
        self.add_copied(pinned)

    def remove_cases(self, set_id: str, eval_ids: Collection[str]) -> None:
        """Removes the entries that name these cases of the set."""
        gone: dict[BlockList, list[int]] = {name: [] for name in BLOCK_LISTS}
        for name, index, entry in self._every_entry():
            if entry.get("set") == set_id and entry.get("case") in eval_ids:
                gone[name].append(index)
        for name, indices in gone.items():
            self.remove_entries(name, indices)

    def copied(
        self, pairs: Sequence[tuple[CaseRef, CaseRef]], *, elsewhere: bool = False
    ) -> CopiedReferences:
        """The entries that copies of cases need, from the `(case, its copy)` pairs.

        With `elsewhere`, the copies have another config, so that a rule without a set is also needed; in the
        same config it applies to a copy with the same id already.
        """
        copies: dict[BlockList, list[Entry]] = {name: [] for name in BLOCK_LISTS}
        for name, entries in copies.items():
            for old, new in pairs:
                of_case = [entry for _, entry in self._of_case(name, old)]
                if name in _OF_ANY_SET and (old[1] != new[1] or elsewhere):
                    of_case += self._of_any_set(name, old)
                entries += ({**entry, "set": new[0], "case": new[1]} for entry in of_case)
        return copies

    def add_copied(self, copies: CopiedReferences) -> None:
        """Adds entries at the end of their lists, which are made where they are missing."""
        for name, entries in copies.items():
            self.append_entries(name, entries)

    def _every_entry(self) -> list[tuple[BlockList, int, dict[str, Any]]]:
        return [(name, index, entry) for name in BLOCK_LISTS for index, entry in self.entries(name)]

    def _of_case(self, name: BlockList, case: tuple[str | None, str]) -> list[tuple[int, dict[str, Any]]]:
        """The entries of a list that name this set, None for none, and this case, each with its index."""
        return [
            (index, entry)
            for index, entry in self.entries(name)
            if (entry.get("set"), entry.get("case")) == case
        ]

    def _of_any_set(self, name: BlockList, case: CaseRef) -> list[dict[str, Any]]:
        """The entries that name the case alone, but for rules that one with its set overrides."""
        entries = [entry for _, entry in self._of_case(name, (None, case[1]))]
        if name != "rules":
            return entries
        overridden = {(rule.get("tool"), rule.get("arg")) for _, rule in self._of_case(name, case)}
        return [rule for rule in entries if (rule.get("tool"), rule.get("arg")) not in overridden]

    # The lists of the block

    def append_entries(self, name: BlockList, entries: Sequence[Entry]) -> None:
        """Adds entries to a list of the `evaltui` block, both made where they are missing."""
        for entry in entries:
            append(self.config, (*BLOCK, name), entry)

    def remove_entries(self, name: BlockList, indices: Sequence[int]) -> None:
        """Removes entries from a list of the `evaltui` block, and the list if it is empty then."""
        path: JsonPath = (*BLOCK, name)
        for index in sorted(indices, reverse=True):
            remove(self.config, (*path, index))
        if indices and not list_at(self.config, path):
            remove(self.config, path)


def _subject(name: BlockList, entry: Entry) -> Any:
    return (entry.get("tool"), entry.get("arg")) if name == "rules" else entry
