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

from evaltui.project import guide
from evaltui.workbench.actions import Scope
from tests.commands.command_line import call


@pytest.mark.parametrize("name", guide.TOPICS)
def test_a_page_through_a_pipe_is_plain_text(name, capsys):
    assert call("help", name) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"# {guide.topic(name).title}\n")
    # No comments but one that is shown as code, no pictures, no links that lead nowhere, no styles.
    text = text.replace("`<!-- evaltui-report -->`", "")
    assert not re.search(r"<!--|<img|!\[|\]\((?!https?:)|\x1b", text)
    # A key between backticks is no beginning of a link.
    assert not re.search(r"(?<!`)``(?!`)", text)


def test_a_comment_at_the_end_of_a_line_does_not_join_it_to_the_next_one():
    pages = {name: (guide.FOLDER / f"{name}.md").read_text(encoding="utf-8") for name in guide.TOPICS}
    ends = [
        (name, found) for name, text in pages.items() for found in re.findall(r"(`\S+`)<!-- \w+ -->\n", text)
    ]
    assert ends
    assert all(f"{key}\n" in guide.topic(name).text for name, key in ends)


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


@pytest.fixture
def found(capsys):
    """Searches; returns the headings of the passages, best first, and all that is printed."""

    def search(*words):
        assert call("help", *words) == 0
        out = capsys.readouterr().out
        return re.findall(r"^## (.+)$", out, re.MULTILINE), out

    return search


def test_a_search_finds_sections_in_any_case_and_form_of_the_words(found):
    rename = "Eval sets and cases › Rename a tool everywhere"
    for words in ("rename tool everywhere", "TOOLS renaming everywhere", "how do I rename a tool everywhere"):
        assert found(*words.split())[0][0] == rename


def test_a_search_puts_headings_first_and_names_last(found):
    assert found("secrets")[0][0] == "Files › Secrets"
    assert found("watch", "mode")[0][0] == "Watch mode"
    assert not found("criteria", "threshold")[0][0].startswith(("Keys", "Options"))


def test_a_passage_is_a_paragraph_an_item_or_a_row_with_the_head_of_its_table(found):
    headings, out = found("mock", "a", "tool")
    assert "How do I …? › Run" in headings
    row = out.partition("How do I …? › Run\n\n")[2].partition("\n\n")[0].splitlines()
    assert row[1] == "|---|---|---|"
    assert len(row) == 3
    assert "mock a tool" in row[2]
    for word in ("case", "agent", "session"):
        passages = re.split(r"^`evaltui help \S+`$", found(word)[1], flags=re.MULTILINE)
        assert all(passage.count("```") % 2 == 0 for passage in passages)
        assert max(len(passage.splitlines()) for passage in passages) < 40


def test_words_of_questions_alone_find_nothing():
    assert call("help", "how", "do", "I") == 2


def test_words_that_are_no_page_show_passages_and_the_pages_they_are_from(capsys):
    assert call("help", "rename", "a", "tool") == 0
    out = capsys.readouterr().out
    assert out.startswith("## Eval sets and cases › Rename a tool everywhere\n")
    assert "`evaltui help cases`" in out
    assert call("help", "xyzzy") == 2
    assert "no page has 'xyzzy'" in capsys.readouterr().err


def test_the_pages_are_written_as_markdown_with_a_list(tmp_path, capsys):
    folder = tmp_path / "made" / "pages"
    assert call("help", "--markdown", folder) == 0
    assert f"{len(guide.TOPICS)} pages and llms.txt" in capsys.readouterr().out
    listed = (folder / "llms.txt").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", listed)) == set(guide.TOPICS)
    for name in guide.TOPICS:
        text = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {guide.topic(name).title}\n")
        assert not re.search(r"<!--|<img|!\[", re.sub(r"`[^`]*`", "", text))
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", text):
            assert (folder / target).exists(), target
    (tmp_path / "file").write_text("")
    assert call("help", "--markdown", tmp_path / "file") == 2


def test_a_comment_in_code_is_no_heading():
    titles = [section.title for section in guide.sections(guide.topic("criteria"))]
    assert titles[0] == "When a case passes"
    assert "my_agent/metrics.py" not in titles


def test_an_error_names_the_page_that_helps(tmp_path, capsys):
    assert call("run", tmp_path) == 2
    assert capsys.readouterr().err.endswith("evaltui run: see `evaltui help agents`\n")
    sources = (path.read_text(encoding="utf-8") for path in guide.FOLDER.parent.rglob("*.py"))
    pages = [page for source in sources for page in re.findall(r'^    page = "(.+)"$', source, re.MULTILINE)]
    assert len(pages) > 4
    assert set(pages) <= set(guide.TOPICS)


def test_every_place_has_a_page():
    assert {scope.topic for scope in Scope} <= set(guide.TOPICS)
