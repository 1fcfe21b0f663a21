"""The scenes of the golden screens.

A walk opens an agent and goes from scene to scene; a scene without a name is a step on the way. Of the keys,
texts in quotes are typed, and what stands in angle brackets is done by another program, see `deeds`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from tests.golden import scene_agents as agents


class Scene(NamedTuple):
    """A screen: its name, the keys that lead to it from the one before, and what it shows then."""

    name: str
    keys: str
    shows: str


class Walk(NamedTuple):
    """Scenes of one agent, which is written into a folder."""

    agent: Callable[[Path], Path]
    scenes: tuple[Scene, ...]
    before: Callable[[Path], Awaitable[None]] | None = None
    """What has happened to the agent before."""
    needs_adk: bool = False


def _walk(
    agent: Callable[[Path], Path],
    *rows: tuple[str, str, str],
    before: Callable[[Path], Awaitable[None]] | None = None,
    needs_adk: bool = False,
) -> Walk:
    return Walk(agent, tuple(Scene(*row) for row in rows), before, needs_adk)


WALKS: dict[str, Walk] = {
    "look": _walk(
        agents.sample("home_automation"),
        ("cases-not-run", "", "Python 3.xx"),
        ("case", "enter", "You are welcome."),
        ("result-not-run", "3", "Run case"),
        ("help", "1 question_mark", "Keys for Cases"),
        ("palette", "escape ctrl+p", "type an action"),
        ("palette-theme", '"theme" enter', "evaltui-light"),
        ("guide-page", "escape f1", "Guide ›"),
        ("guide", "f1", "search keys and topics"),
        ("guide-found", '"rename tool"', "Rename a tool"),
        ("find-case", 'escape ctrl+g "kit"', "kitchen_light"),
        ("jump", "escape ctrl+o", " 6 "),
        ("session-dialog", "escape c", "home_automation"),
    ),
    "house": _walk(
        agents.sample("home_automation"),
        ("", "", "Python 3.xx"),
        ("", "R", "5 failed in"),
        # As in the clinic.
        ("cases-run", "down up", "5 failed in"),
        ("cases-filtered", 'slash "kitchen"', "2 of 9"),
        # A case that the filter hides.
        ("", 'enter ctrl+g "hello" enter', "9 cases in 2 sets"),
        ("result-out-of-order", "home down down down 3 n", "difference 1/1"),
        ("result-call-missing", "f", "missing call set_light"),
        ("result-response", "f", "I just checked for you: it is dark in"),
        ("result-arguments", "f n", "difference 1/2"),
        # Both values and their types are in the row.
        ("result-details", "enter", "Nothing more to show"),
        ("result-metric", "right enter", "Rate of turns whose calls"),
        ("relax", "enter n x", "no model calls"),
        ("accept", "escape a", "Accept"),
        ("result-state", "escape f n", "difference 1/3"),
        ("trace", "5", "We are away for a week"),
        ("trace-event", "home down down enter", "System instruction"),
        ("trace-response", "right", "Call set_temperature"),
        ("console", "escape 6", "No output yet"),
        ("help-in-result", "3 question_mark", "Keys for Result"),
    ),
    "rename": _walk(
        agents.sample("home_automation"),
        ("", "", "Python 3.xx"),
        ("", 'enter ctrl+g "off_bedroom" enter', "set_light"),
        ("rename-everywhere", "j j j j j j f3", "the places are shown next"),
        ("rename-places", '"switch_light" enter', "places in"),
    ),
    "runs": _walk(
        agents.parrot,
        ("", "", "Python 3.xx"),
        ("repeat-dialog", "asterisk", "5 executions"),
        ("", "escape R", "2 failed in"),
        ("", "<another answer> R", "1 failed in"),
        ("runs", "H", "2 runs"),
        ("name-run", 'f2 "before"', "before"),
        ("runs-named", "enter", "9 s ago       before"),
        ("compare", "equals_sign", "Turn 1"),
        ("compare-swapped", "equals_sign", "Broken 1"),
        ("earlier-run", "enter", "never passed"),
        ("run-plot-cost", "escape H p", "run"),
        ("result-stale", "escape <agent changes> f5 3", "stale:"),
        ("watch-on", "w", "● watch"),
    ),
    "clinic": _walk(
        agents.clinic,
        ("", "", "Python 3.xx"),
        ("", "R", "1 flaky, 1 not evaluated in"),
        # A trace that grew while its case ran has its cursor where it was drawn last: it is opened again.
        ("outcomes", "down up", "1 flaky, 1 not evaluated in"),
        ("result-error", "f f 3", "ConnectionError"),
        ("console-printed", "6", "asked: When are you open?"),
        ("trace-error", "5", "ConnectionError"),
        ("result-not-evaluated", "3 f", "NOT EVALUATED"),
        ("result-flaky", 'ctrl+g "mood" enter 3', "FLAKY"),
        ("result-second-repeat", "right_square_bracket", "repeat 3 of 4"),
        ("set-result", "1 left left 3", "1/1"),
        ("preflight", "exclamation_mark", "METRIC"),
    ),
    "running": _walk(
        agents.waiting,
        ("", "", "Python 3.xx"),
        ("", "R", "1 in flight"),
        ("run-going-on", "", "Result ✓"),
        ("run-cancelled", "ctrl+c", "cancelled"),
    ),
    "edit": _walk(
        agents.parrot,
        ("", "", "Python 3.xx"),
        ("new-case", "o", "Added case_4"),
        ("rename", "escape 1 f2", "f2 Rename"),
        ("rename-refused", 'ctrl+u "greeting" enter', "greeting already exists"),
        ("case-deleted", "escape D", "Deleted case_4"),
        ("tag", "number_sign", "Separated by spaces"),
        ("add-choices", "escape home down down down 2 A", "add turn"),
        ("field", "escape enter", "cancel"),
        ("raw", "escape f4", "eval_id"),
        ("criteria", "escape escape 1 m", "Not in use"),
        ("criteria-tried", "left", "0.9"),
        ("quit", "escape ctrl+q", "save and quit"),
    ),
    "conflict": _walk(
        agents.parrot,
        ("", "", "Python 3.xx"),
        ("", 'down 2 end up enter " Yes." ctrl+j', "● 1 unsaved"),
        ("conflict", "<theirs> ctrl+s", "undecided"),
        ("conflict-decided", "right", "theirs"),
    ),
    "recovery": _walk(
        agents.parrot,
        ("recovery", "", "enter apply"),
        before=agents.crash,
    ),
    "keymap": _walk(
        agents.parrot,
        ("keymap-problems", "", "Your keys"),
        before=agents.wrong_keys,
    ),
    "chat": _walk(
        agents.sample("home_automation"),
        ("chat-empty", "4", "No messages yet"),
        ("chat", '"Turn off the bedroom light" enter', "The bedroom light is off."),
        ("chat-trace", "escape t", "text  The bedroom light is off."),
        ("new-chat", "4 ctrl+n", "ctrl+n New chat"),
        ("session-state", "escape escape S", "State now"),
        ("save-case", "escape ctrl+t", "enter save"),
        ("chat-rewound", "escape up up up delete", "No messages yet"),
        ("chat-from-case", "1 down c", "c Chat"),
    ),
    "files": _walk(
        agents.old_files,
        ("", "", "Python 3.xx"),
        ("convert", "home i", "Name of the new file"),
        ("import", "escape I", "I Import"),
        ("import-traces", "<path of the trace> enter", "text  Yes, and rugs."),
        ("import-conversation", "enter", "ctrl+t Save as case"),
        ("sessions", "escape <listen> T", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("", "escape 1 home i enter", "▾ older  "),
    ),
    "gaps": _walk(
        agents.sample("home_automation"),
        ("", "", "Python 3.xx"),
        ("gaps-not-run", "M", "evalset.json: not run"),
        ("", "r", "answer negated"),
        ("gaps", "G k k k k k right right", "set_temperature"),
        ("gaps-change", "home down", "You are not welcome"),
        ("gaps-draft", "c", "still passes"),
        ("gaps-reading", "escape enter", "lights › hello"),
        ("gaps-cases", "escape G k k k k k enter", "reaches:"),
    ),
    "matrix": _walk(
        agents.home,
        ("", "", "Python 3.xx"),
        ("matrix", "V", "2 variants, 50 executions"),
        ("matrix-more-repeats", "down r", "Run more repeats"),
        ("matrix-trajectories", "escape equals_sign", "Turn 1 ≠"),
        ("", "escape right_square_bracket", "repeat 2 of 5"),
        ("", "enter", "esc back to the last results"),
    ),
    "start": _walk(
        agents.newcomer,
        ("start", "", "READY"),
        ("no-sets", "1", "No eval sets yet"),
        ("new-set", "O", "New set"),
        ("", "escape 2 enter", "enter send"),
    ),
    "broken": _walk(
        agents.broken,
        ("", "", "Python 3.xx"),
        ("", "r", "1 error in"),
        ("broken-agent", "", "Result !"),
        ("broken-agent-result", "3", "KeyError"),
        ("broken-set", "1 end 3", "Cannot run: line 1"),
        ("", "1 r", "Cannot run torn.evalset.json"),
    ),
    "travel": _walk(
        agents.sample("travel_desk"),
        ("", "", "Python 3.xx"),
        ("", "R", "2 failed in"),
        ("adk-cases", "down", "▌"),
        ("adk-trace", "home down down down down 5", "transfer"),
        ("adk-model-call", "home down down enter", "call 1 of turn 1"),
        needs_adk=True,
    ),
    "keyless": _walk(
        agents.keyless,
        ("no-key", "", "GOOGLE_API_KEY is not set"),
        needs_adk=True,
    ),
    "library": _walk(
        agents.sample("library_desk"),
        ("", "", "Python 3.xx"),
        ("judged-cases", "R", "1 failed in"),
        ("judged-result", "f 3", "FAILED"),
        ("simulated-case", "1 home down down 2", "Simulated user"),
    ),
}
