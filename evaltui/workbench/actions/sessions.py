"""Sessions that are received as traces."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action, not_read

_in_sessions = partial(action, where=(Scope.SESSIONS,))


SESSIONS: tuple[Action, ...] = (
    action(
        "sessions",
        "Receive sessions",
        "Receive traces over OTLP, and score each session against its nearest case once it is complete",
        "T",
        refusal=not_read,
        footer="sessions",
        acts=True,
    ),
    _in_sessions(
        "session_to_case",
        "Save as case…",
        "Save turns of this session as a case, with their expected calls and responses",
        "ctrl+t",
        rank=1,
        footer="save case",
        acts=True,
    ),
    _in_sessions(
        "toggle_trajectories",
        "Show new trajectories",
        "Calls that turns of sessions make and turns of no case; Save as case… takes an example of one",
        "n",
        rank=2,
        footer="trajectories",
    ),
    _in_sessions(
        "toggle_listening",
        "Toggle listening",
        "Stop listening, or listen again; what was received stays",
        "space",
        rank=3,
        word=lambda workbench: "stop listening" if workbench.received.is_on else "listen",
        footer="listen",
        acts=True,
    ),
)
