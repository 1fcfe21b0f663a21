"""The actions of the registry in the command palette."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from evaltui.tui.screens.main import MainScreen
from evaltui.workbench.actions import Action, Scope, actions_in
from evaltui.workbench.keys import key_name


class ActionProvider(Provider):
    """What can be done everywhere; its texts are our own, so nothing foreign is read as markup."""

    async def discover(self) -> Hits:
        for action, title in self._titles():
            yield DiscoveryHit(title, partial(self._perform, action))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, title in self._titles():
            if (score := matcher.match(title)) > 0:
                yield Hit(score, matcher.highlight(title), partial(self._perform, action))

    def _titles(self) -> list[tuple[Action, str]]:
        shown = (action for action in actions_in(Scope.MAIN) if action.id != "palette")
        return [(action, f"{action.help}  {key_name(action.keys[0])}") for action in shown]

    def _perform(self, action: Action) -> None:
        if isinstance(self.screen, MainScreen):
            self.screen.action_perform(action.id)
