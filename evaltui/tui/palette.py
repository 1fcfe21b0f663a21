"""What the palette finds: what can be done, every case, every set, every theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from textual.fuzzy import Matcher

from evaltui.text.lines import Line
from evaltui.text.values import cut, visible
from evaltui.tui.screens.main import MainScreen
from evaltui.workbench.actions import ACTIONS, Scope, keys_of
from evaltui.workbench.keys import key_name
from evaltui.workbench.state import Selection

# Nobody reads further.
_MAX_CASES = 60
# More than what scattered letters can score: here every word was found as it was typed.
_WHOLE_WORDS = 100.0
_MAX_TEXT = 60


class Entry(NamedTuple):
    """Something that can be chosen."""

    score: float
    line: Line
    choose: Callable[[], object]


def entries(main: MainScreen, query: str) -> list[Entry]:
    """What there is for a query, the best first; without one, actions and themes."""
    found = [*_actions(main, query), *_cases(main, query), *_themes(main, query)]
    return sorted(found, key=lambda entry: entry.score, reverse=True)


def _score(query: str, text: str) -> float:
    """0 where it does not match; nothing typed matches everything."""
    return Matcher(query).match(text) if query else 1.0


def _actions(main: MainScreen, query: str) -> Iterator[Entry]:
    """Those that are valid where the focus is; those that are refused say why."""
    workbench, wheres = main.workbench, {main.scope, Scope.MAIN}
    for action in ACTIONS:
        if action.id == "palette" or not wheres & set(action.where):
            continue
        if (score := _score(query, f"{action.title} {action.help}")) <= 0:
            continue
        line: Line = [(action.help, ""), (f"  {key_name(keys_of(action, workbench)[0])}", "bold")]
        if reason := action.refusal(workbench):
            line.append((f"  not now: {visible(reason)}", "dim"))
        yield Entry(score, line, partial(main.action_perform, action.id))


def _cases(main: MainScreen, query: str) -> Iterator[Entry]:
    """Sets and cases: every word of the query is looked for in ids and first texts."""
    words = query.casefold().split()
    found = _matching(main, words) if words else iter(())
    for selection, line in islice(found, _MAX_CASES):
        yield Entry(_WHOLE_WORDS, line, partial(main.reveal, selection))


def _matching(main: MainScreen, words: list[str]) -> Iterator[tuple[Selection, Line]]:
    for entry in main.workbench.sets.entries:
        set_id = visible(entry.eval_set_id)
        if all(word in entry.eval_set_id.casefold() for word in words):
            yield Selection(entry.path), [("set ", "dim"), (set_id, "")]
        for case in entry.cases:
            text = f"{case.eval_id}\n{case.first_text}".casefold()
            if all(word in text for word in words):
                said = cut(visible(case.first_text), _MAX_TEXT)
                name: Line = [("case ", "dim"), (visible(case.eval_id), "")]
                yield Selection(entry.path, case.eval_id), [*name, (f"  {set_id}  {said}", "dim")]


def _themes(main: MainScreen, query: str) -> Iterator[Entry]:
    for name in sorted(main.app.available_themes):
        if (score := _score(query, f"theme {name}")) > 0:
            yield Entry(score, [("theme ", "dim"), (name, "")], partial(setattr, main.app, "theme", name))
