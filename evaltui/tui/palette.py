"""The command palette: what can be done, every case, every set, every theme.

Its texts are given as `Text`, so that nothing foreign in them is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from evaltui.core.show import cut, visible
from evaltui.tui.screens.main import MainScreen
from evaltui.workbench.actions import ACTIONS, Action, Scope, keys_of
from evaltui.workbench.keys import key_name
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Nobody reads further; and the palette keeps every hit as a widget's option.
_MAX_CASES = 60
# More than what scattered letters can score: here every word was found as it was typed.
_WHOLE_WORDS = 100.0
_MAX_TEXT = 60


class WorkbenchProvider(Provider):
    """What all providers know."""

    @property
    def main(self) -> MainScreen | None:
        return self.screen if isinstance(self.screen, MainScreen) else None

    @property
    def workbench(self) -> Workbench | None:
        return self.main.workbench if self.main else None


class ActionProvider(WorkbenchProvider):
    """The actions that are valid where the focus is; those that are refused say why."""

    async def discover(self) -> Hits:
        for action, title in self._titles():
            yield DiscoveryHit(title, partial(self._perform, action))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, title in self._titles():
            if (score := matcher.match(f"{action.title} {action.help}")) > 0:
                yield Hit(score, title, partial(self._perform, action))

    def _titles(self) -> Iterator[tuple[Action, Text]]:
        if self.main is None:
            return
        workbench, wheres = self.main.workbench, {self.main.scope, Scope.MAIN}
        for action in ACTIONS:
            if action.id == "palette" or not wheres & set(action.where):
                continue
            title = Text.assemble(action.help, (f"  {key_name(keys_of(action, workbench)[0])}", "bold"))
            if reason := action.refusal(workbench):
                title.append(f"  not now: {visible(reason)}", "dim")
            yield action, title

    def _perform(self, action: Action) -> None:
        if self.main is not None:
            self.main.action_perform(action.id)


class CaseProvider(WorkbenchProvider):
    """Sets and cases: every word of the query is looked for in ids and first texts."""

    async def search(self, query: str) -> Hits:
        words = query.casefold().split()
        for selection, title in islice(self._matching(words), _MAX_CASES):
            yield Hit(_WHOLE_WORDS, title, partial(self._select, selection))

    def _matching(self, words: list[str]) -> Iterator[tuple[Selection, Text]]:
        workbench = self.workbench
        for entry in workbench.sets if workbench and words else ():
            set_id = visible(entry.eval_set_id)
            if all(word in entry.eval_set_id.casefold() for word in words):
                yield Selection(entry.path), Text(f"set {set_id}")
            for case in entry.cases:
                text = f"{case.eval_id}\n{case.first_text}".casefold()
                if all(word in text for word in words):
                    title = Text(f"case {visible(case.eval_id)}")
                    title.append(f"  {set_id}  {cut(visible(case.first_text), _MAX_TEXT)}", "dim")
                    yield Selection(entry.path, case.eval_id), title

    def _select(self, selection: Selection) -> None:
        if self.main is not None:
            self.main.reveal(selection)


class ThemeProvider(WorkbenchProvider):
    """Every theme there is."""

    async def discover(self) -> Hits:
        for name in sorted(self.app.available_themes):
            yield DiscoveryHit(Text(f"theme {name}"), partial(self._choose, name))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name in sorted(self.app.available_themes):
            if (score := matcher.match(f"theme {name}")) > 0:
                yield Hit(score, Text(f"theme {name}"), partial(self._choose, name))

    def _choose(self, name: str) -> None:
        self.app.theme = name
