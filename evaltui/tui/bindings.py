"""The action registry as Textual bindings."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from evaltui.workbench.actions import Scope, actions_in


def bindings(scope: Scope) -> list[BindingType]:
    """One binding per action of a scope; all of them go to the screen, which asks whether it can be done."""
    return [
        Binding(
            ",".join(action.keys), f"screen.perform('{action.id}')", action.help, show=False, id=action.id
        )
        for action in actions_in(scope)
    ]
