"""What is copied commands no terminal, and what is kept of it on disk has no secrets."""

from __future__ import annotations

import json
import stat

from evaltui.text.values import visible_text
from evaltui.tui.exchange import copy
from evaltui.tui.pane import CopiedText
from evaltui.workbench.workbench import Workbench


class Terminal:
    def __init__(self):
        self.copied = []

    def copy_to_clipboard(self, text):
        self.copied.append(text)


def test_control_characters_are_spelled_out(tmp_path):
    terminal = Terminal()
    text = "a\x1b[31mred\x07\n\tb\r\n\u202ec\x9b \ud800 ok"
    copy(terminal, Workbench(tmp_path), CopiedText("the answer", text))
    clean = "a\\u001b[31mred\\u0007\n\tb\n\\u202ec\\u009b \\ud800 ok"
    assert terminal.copied == [clean]
    assert (tmp_path / ".evaltui" / "copied.txt").read_text() == clean


def test_it_says_whose_clipboard_that_is(tmp_path, monkeypatch):
    workbench, copied = Workbench(tmp_path), CopiedText("the answer", "yes")
    assert "to the terminal's clipboard" in copy(Terminal(), workbench, copied)
    monkeypatch.setenv("EVALTUI_IN_BROWSER", "1")
    assert "to the browser's clipboard" in copy(Terminal(), workbench, copied)


def test_json_stays_json():
    data = {"a": "\x7f\x85\u2028\n\t\x1b\ufeff é"}
    assert json.loads(visible_text(json.dumps(data, indent=2, ensure_ascii=False))) == data


def test_the_file_is_private_has_no_secrets_and_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "correct horse")
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("mine")
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / ".evaltui").mkdir()
    file = agent / ".evaltui" / "copied.txt"
    file.symlink_to(elsewhere)
    terminal = Terminal()
    copy(terminal, Workbench(agent), CopiedText("the answer", "say correct horse"))
    assert terminal.copied == ["say correct horse"]
    assert file.read_text() == "say <SHOP_API_KEY>"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert elsewhere.read_text() == "mine"
