"""What a config says of single cases and turns, kept true when these change.

The marks in `evaltui.turns` name a set, a case and a turn. The rules in `evaltui.rules` may name a set and
a case; one that names a case alone may be meant for other sets too, so it is never changed or removed:
where it held for a case that has another name or place now, a copy that names the set is added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from evaltui.core.editing.json_paths import dicts, insert_at, list_at, value_at
from evaltui.core.jsondoc.edits import Edit, Put, Remove
from evaltui.core.model.problems import JsonPath, Problem, Severity
from evaltui.core.model.regexes import is_slow
from evaltui.text.wording import did_you_mean

TURNS: JsonPath = ("evaltui", "turns")
RULES: JsonPath = ("evaltui", "rules")

Mode = Literal["context", "skip"]
CaseRef = tuple[str, str]
Renumbering = Callable[[int], int | None]


def marks_of(config: Any, case: CaseRef) -> list[tuple[int, dict[str, Any]]]:
    """The marks of a case, `(set id, eval id)`, each with its index in `evaltui.turns`."""
    return [
        (index, mark)
        for index, mark in dicts(list_at(config, TURNS))
        if (mark.get("set"), mark.get("case")) == case
    ]


def mode_of(config: Any, case: CaseRef, turn: int) -> Mode | None:
    """The mark on a turn, the last one given for it."""
    modes = [mark.get("mode") for _, mark in marks_of(config, case) if _is_turn(mark, turn)]
    return modes[-1] if modes else None


def mark(config: Any, case: CaseRef, turn: int, mode: Mode) -> list[Edit]:
    """Give a turn this mark in place of any other."""
    own = [index for index, mark in marks_of(config, case) if _is_turn(mark, turn)]
    if not own:
        return append_to_block(config, "turns", [_mark(case, turn, mode)])
    return [*_without(TURNS, own[:-1]), Put((*TURNS, own[-1] - len(own) + 1, "mode"), mode)]


def unmark(config: Any, case: CaseRef, turn: int, mode: Mode) -> list[Edit]:
    """Take the marks of one mode from a turn."""
    own = [i for i, mark in marks_of(config, case) if _is_turn(mark, turn) and mark.get("mode") == mode]
    return remove_from_block(config, "turns", own)


def set_renamed(config: Any, old: str, new: str) -> list[Edit]:
    return [
        Put((*path, index, "set"), new)
        for path in (TURNS, RULES)
        for index, entry in dicts(list_at(config, path))
        if entry.get("set") == old
    ]


def cases_moved(config: Any, pairs: Sequence[tuple[CaseRef, CaseRef]]) -> list[Edit]:
    """Cases have another id, or are in another set of this config now: the `(before, after)` pairs."""
    after = dict(pairs)
    edits: list[Edit] = []
    for path in (TURNS, RULES):
        for index, entry in dicts(list_at(config, path)):
            before = entry.get("set"), entry.get("case")
            if all(isinstance(name, str) for name in before) and before in after:
                now = after[before]
                edits += [
                    Put((*path, index, key), name)
                    for key, name, old in zip(("set", "case"), now, before, strict=True)
                    if name != old
                ]
    pinned = [
        {**rule, "set": new[0], "case": new[1]}
        for old, new in pairs
        if old[1] != new[1]
        for rule in _set_less_rules(config, old)
    ]
    return edits + append_to_block(config, "rules", pinned)


def cases_removed(config: Any, set_id: str, eval_ids: Collection[str]) -> list[Edit]:
    """Take out what names these cases of the set."""
    gone = [
        (
            name,
            [
                index
                for index, entry in dicts(list_at(config, ("evaltui", name)))
                if entry.get("set") == set_id and entry.get("case") in eval_ids
            ],
        )
        for name in ("turns", "rules")
    ]
    return [edit for name, indices in gone for edit in remove_from_block(config, name, indices)]


def copied(
    config: Any, pairs: Sequence[tuple[CaseRef, CaseRef]], *, elsewhere: bool = False
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The marks and the rules that copies of cases need, from the `(case, its copy)` pairs.

    With `elsewhere` the copies have another config: a rule without a set has to be brought along then, while
    in the same config it holds for a copy of the same name as it is.
    """
    marks: list[dict[str, Any]] = []
    rules: list[dict[str, Any]] = []
    for old, new in pairs:
        renamed = {"set": new[0], "case": new[1]}
        marks += [{**mark, **renamed} for _, mark in marks_of(config, old)]
        rules += [{**rule, **renamed} for rule in _rules_of(config, *old)]
        if old[1] != new[1] or elsewhere:
            rules += [{**rule, **renamed} for rule in _set_less_rules(config, old)]
    return marks, rules


def turns_changed(config: Any, case: CaseRef, now: Renumbering) -> list[Edit]:
    """Renumber the marks of a case: `now` gives the new number of a turn, None for one that is gone."""
    edits: list[Edit] = []
    gone: list[int] = []
    for index, mark in marks_of(config, case):
        turn = mark.get("turn")
        if not isinstance(turn, int):
            continue
        number = now(turn)
        if number is None:
            gone.append(index)
        elif number != turn:
            edits.append(Put((*TURNS, index, "turn"), number))
    return edits + remove_from_block(config, "turns", gone)


def append_to_block(config: Any, name: str, entries: Sequence[Mapping[str, Any]]) -> list[Edit]:
    """Add entries to a list of the `evaltui` block, both made where they are missing."""
    if not entries:
        return []
    if not isinstance(value_at(config, ("evaltui",)), dict):
        return [Put(("evaltui",), {name: list(entries)})]
    path: JsonPath = ("evaltui", name)
    count = len(list_at(config, path))
    if not isinstance(value_at(config, path), list):
        return [Put(path, list(entries))]
    return [insert_at(config, path, count + number, entry) for number, entry in enumerate(entries)]


def remove_from_block(config: Any, name: str, indices: Sequence[int]) -> list[Edit]:
    """Take entries out of a list of the `evaltui` block; the list goes with its last entry."""
    path: JsonPath = ("evaltui", name)
    if indices and len(indices) == len(list_at(config, path)):
        return [Remove(path)]
    return _without(path, indices)


def dangling(config: Any, sets: Mapping[str, Mapping[str, int | None]]) -> Iterator[Problem]:
    """Warnings for marks and rules that name what is not there.

    `sets` are those that the config is for: their cases by id, each with its number of turns, None where
    a user is simulated.
    """
    for name in ("turns", "rules"):
        for index, entry in dicts(list_at(config, ("evaltui", name))):
            yield from _dangling(entry, ("evaltui", name, index), sets)


def idle_rules(config: Any, tools: Mapping[str, Mapping[str, Collection[str]]]) -> Iterator[Problem]:
    """Warnings for rules of tools that no case expects a call of, and for rules that another one hides.

    `tools` are the tools that calls are expected of, by set and case. Where a rule names a set or a case that
    is not there, `dangling` says so.
    """
    hidden_by: dict[tuple[Any, ...], int] = {}
    for index, rule in reversed(list(dicts(list_at(config, RULES)))):
        place = tuple(rule.get(key) for key in ("tool", "arg", "set", "case"))
        if (
            all(isinstance(name, str | None) for name in place)
            and hidden_by.setdefault(place, index) != index
        ):
            yield _warning(
                (*RULES, index), f"never holds: rules[{hidden_by[place]}] is for the same argument"
            )
        tool, set_id, case = rule.get("tool"), rule.get("set"), rule.get("case")
        in_scope = [
            names
            for one, cases in tools.items()
            if set_id in (None, one)
            for eval_id, names in cases.items()
            if case in (None, eval_id)
        ]
        known = {name for names in in_scope for name in names}
        if isinstance(tool, str) and in_scope and tool not in known:
            yield _warning(
                (*RULES, index, "tool"), f"no call of {tool!r} is expected{did_you_mean(tool, known)}"
            )


def slow_rules(config: Any) -> Iterator[Problem]:
    """Warnings for rules whose regex takes very long on texts that it does not match."""
    for index, rule in dicts(list_at(config, RULES)):
        match = rule.get("match")
        if isinstance(match, dict) and isinstance(regex := match.get("regex"), str) and is_slow(regex):
            yield _warning(
                (*RULES, index, "match", "regex"),
                "takes very long on some texts that do not match; write it without repeats inside repeats",
            )


def _dangling(
    entry: Mapping[str, Any], path: JsonPath, sets: Mapping[str, Mapping[str, int | None]]
) -> Iterator[Problem]:
    set_id, case, turn = entry.get("set"), entry.get("case"), entry.get("turn")
    if isinstance(set_id, str) and set_id not in sets:
        hint = did_you_mean(set_id, sets)
        yield _warning((*path, "set"), f"no eval set {set_id!r} beside this config{hint}")
        return
    if not isinstance(case, str):
        return
    every = {one: count for own in sets.values() for one, count in own.items()}
    cases = sets[set_id] if isinstance(set_id, str) else every
    if case not in cases:
        where = set_id if isinstance(set_id, str) else "the eval sets beside this config"
        yield _warning((*path, "case"), f"no case {case!r} in {where}{did_you_mean(case, cases)}")
    elif isinstance(turn, int) and (count := cases[case]) is not None and turn >= count:
        number = f"{count} turn{'' if count == 1 else 's'}"
        yield _warning((*path, "turn"), f"no turn {turn}: {case} has {number}, counted from 0")


def _set_less_rules(config: Any, case: CaseRef) -> list[dict[str, Any]]:
    """The rules that name the case alone, but for what a rule that names its set, too, says otherwise."""
    said = {(rule.get("tool"), rule.get("arg")) for rule in _rules_of(config, *case)}
    return [
        rule for rule in _rules_of(config, None, case[1]) if (rule.get("tool"), rule.get("arg")) not in said
    ]


def _rules_of(config: Any, set_id: str | None, eval_id: str) -> list[dict[str, Any]]:
    return [
        rule
        for _, rule in dicts(list_at(config, RULES))
        if (rule.get("set"), rule.get("case")) == (set_id, eval_id)
    ]


def _mark(case: CaseRef, turn: int, mode: Mode) -> dict[str, Any]:
    return {"set": case[0], "case": case[1], "turn": turn, "mode": mode}


def _is_turn(mark: Mapping[str, Any], turn: int) -> bool:
    return mark.get("turn") == turn and not isinstance(mark.get("turn"), bool)


def _without(path: JsonPath, indices: Sequence[int]) -> list[Edit]:
    return [Remove((*path, index)) for index in sorted(indices, reverse=True)]


def _warning(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.WARNING, path, message)
