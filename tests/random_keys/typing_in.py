"""Rounds of random input on the program itself, in a pseudo terminal."""

from __future__ import annotations

import random
import signal
import sys
import time

import terminal as terminals
from input import SIZES, Action, Keys, Mouse, Outside, Paste, Resize, Wait, actions, mouse_bytes
from outside import Files
from playing import ACTIONS, PATIENCE, Round, RoundFailed, copied
from terminal import Terminal

from evaltui.runner.interrupts import INTERRUPTED

terminals.PATIENCE = PATIENCE


def play_in_terminal(played: Round, count: int = ACTIONS) -> None:
    """One round. Raises RoundFailed."""
    chance = random.Random(played.seed)
    with copied(played.sample) as agent:
        files, size = Files(agent), chance.choice(SIZES)
        played.note(("size", size))
        watch = ["--watch"] if chance.random() < 0.5 else []
        command = [sys.executable, "-m", "evaltui", str(agent), *watch]
        terminal = Terminal(command, agent.parent, *size)
        try:
            # What is typed before there is a program to read it says nothing of it.
            terminal.wait_until(lambda text: "1 Cases" in text or "evaltui" in text, "it does not begin")
            for action in actions(chance, count):
                if terminal.process.poll() is not None:
                    break
                played.note(action)
                size = _do(terminal, files, action, size)
                time.sleep(chance.choice((0, 0, 0.02)))
            _leave(terminal, played)
            if problems := files.problems():
                raise RoundFailed(played.story("\n".join(problems)))
        finally:
            terminal.close()


def _do(terminal: Terminal, files: Files, action: Action, size: tuple[int, int]) -> tuple[int, int]:
    match action:
        case Keys(keys):
            for key in keys:
                terminal.press("escape" if key == "\x1b" else key)
        case Mouse():
            terminal.type(mouse_bytes(action, *size))
        case Paste(text):
            terminal.type(f"\x1b[200~{text}\x1b[201~")
        case Resize(columns, rows):
            terminal.resize(columns, rows)
            return columns, rows
        case Outside():
            files.change(action)
        case Wait(seconds):
            time.sleep(seconds)
    return size


def _leave(terminal: Terminal, played: Round) -> None:
    """It ends when it is told to, and not by force, unless it was left already; it tells of no error."""
    deadline = time.monotonic() + PATIENCE
    if terminal.process.poll() is None:
        terminal.process.send_signal(signal.SIGTERM)
    while (code := terminal.process.poll()) is None:
        if time.monotonic() > deadline:
            raise RoundFailed(played.story(f"it does not end:\n{terminal.text}"))
        time.sleep(0.05)
    if code not in (0, INTERRUPTED) or any(
        word in terminal.last_words for word in ("Traceback", "ended by force")
    ):
        raise RoundFailed(played.story(f"it ended with {code}:\n{terminal.text}\n{terminal.last_words}"))
