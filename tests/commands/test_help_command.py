"""`evaltui help`: topics, pages, at a terminal and through a pipe."""

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

import pytest

from evaltui.files import guide
from evaltui.workbench.actions import Scope
from tests.commands.command_line import call


@pytest.mark.parametrize("name", guide.TOPICS)
def test_a_page_through_a_pipe_is_plain_text(name, capsys):
    assert call("help", name) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"# {guide.topic(name).title}\n")
    # No comments, no pictures, no links that lead nowhere in a terminal, no styles.
    assert not re.search(r"<!--|<img|!\[|\]\((?!https?:)|\x1b", text)


def test_a_comment_at_the_end_of_a_line_does_not_join_it_to_the_next_one():
    assert "`u`\n" in guide.topic("cases").text


def test_links_to_other_pages_say_what_shows_them():
    assert "Recordings (`evaltui help recordings`)" not in guide.topic("recordings").text
    assert "(`evaltui help chat`)" in guide.topic("cases").text


def at_terminal(*words, rows, **variables):
    """Exit code and output at a terminal of 80 columns."""
    main, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    environment.pop("COLUMNS", None)
    environment.pop("LINES", None)
    command = [sys.executable, "-m", "evaltui", *words]
    shown = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    out = b""
    try:
        while piece := os.read(main, 65536):
            out += piece
    except OSError:
        # The other side is closed.
        pass
    os.close(main)
    return shown.wait(), out.decode().replace("\r\n", "\n")


def test_at_a_terminal_a_long_page_goes_through_the_pager():
    code, out = at_terminal("help", "watching", rows=10, PAGER="sed s/^/page:/", NO_COLOR="")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) > 10
    assert all(line.startswith("page:") for line in lines)
    assert "\x1b[" in out
    plain = re.sub(r"\x1b\[[\d;]*m|^page:", "", out, flags=re.MULTILINE)
    assert max(map(len, plain.splitlines())) <= 80
    assert plain.startswith("Watch mode")


def test_at_a_terminal_a_page_that_fits_is_printed():
    code, out = at_terminal("help", "watching", rows=200, PAGER="sed s/^/page:/", NO_COLOR="1")
    assert code == 0
    assert "page:" not in out
    assert "\x1b[3" not in out


def test_without_a_pager_the_page_is_printed():
    code, out = at_terminal("help", "watching", rows=10, PAGER="no-such-pager-here")
    assert code == 0
    assert "Watch mode" in out
    code, out = at_terminal("help", "watching", rows=10, PAGER="")
    assert code == 0
    assert "Watch mode" in out


def test_help_needs_no_screen_and_no_models():
    script = (
        "import sys, evaltui.cli\n"
        "try: evaltui.cli.main(['help', 'chat'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {"textual", "google.genai", "pydantic", "asyncio"}.isdisjoint(done.stderr.split())


def test_search_finds_sections_by_all_words():
    found = guide.search("Fail-On regression")
    assert {section.topic.name for section in found} >= {"headless", "results"}
    for section in found:
        lines = section.topic.text.splitlines()
        assert lines[section.line].lstrip("# ") == section.title
    assert guide.search("no_such_word_at_all") == []


def test_search_puts_headings_first():
    first = guide.search("secrets")[0]
    assert (first.topic.name, first.title) == ("formats", "Secrets")


def test_a_comment_in_code_is_no_heading():
    titles = [section.title for section in guide.sections(guide.topic("criteria"))]
    assert titles[0] == "Criteria and rules"
    assert "my_agent/metrics.py" not in titles


def test_every_place_has_a_page():
    assert {scope.topic for scope in Scope} <= set(guide.TOPICS)
