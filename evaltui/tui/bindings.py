"""The action registry as Textual bindings."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from evaltui.workbench.actions import Action, Scope, actions_in


def bindings(scope: Scope) -> list[BindingType]:
    """One binding per action of a scope; all of them go to the screen, which asks whether it can be done.

    What works everywhere does so with alt as well, which no field takes for text.
    """
    return [
        Binding(
            ",".join((*action.keys, *(_twins(action) if scope is Scope.MAIN else ()))),
            f"screen.perform('{action.id}')",
            action.help,
            show=False,
            id=action.id,
        )
        for action in actions_in(scope)
    ]


def _twins(action: Action) -> list[str]:
    letters = [key for key in action.keys if len(key) == 1]
    return [f"alt+shift+{key.lower()}" if key.isupper() else f"alt+{key}" for key in letters]
