"""What rows of a conversation look like, and the message that is being written, without an app."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser

from evaltui.core.model.outcome import ErrorInfo, StateDiff
from evaltui.text.lines import cells, draw
from evaltui.tui.chat.message import MessageDraft
from evaltui.tui.chat.page import ONE_LINE, full_line, who_width, write_row
from evaltui.tui.exchange import Attached
from evaltui.tui.textual_private import know_alt_enter
from evaltui.workbench.chat.conversation import ChatTurn
from evaltui.workbench.chat.rows import FileShown, Row

EVIL = "[/x] [bold]b[/] \x1b[31mred\x07 \u202e\r\n日本語テスト🎉\tlist[int]"
texts = st.one_of(st.text(max_size=80), st.just(EVIL), st.just("word " * 100))
values = st.one_of(st.none(), st.integers(), texts, st.lists(texts, max_size=3))
kinds = st.sampled_from(
    [
        "user",
        "text",
        "thought",
        "file",
        "call",
        "result",
        "transfer",
        "state",
        "output",
        "error",
        "code",
        "difference",
    ]
)
rows = st.builds(
    Row,
    kinds,
    st.integers(0, 3),
    who=texts,
    text=texts,
    depth=st.integers(0, 9),
    partial=st.booleans(),
    files=st.lists(
        st.builds(FileShown, texts, st.one_of(st.none(), st.integers(0, 10**9)), texts), max_size=2
    ).map(tuple),
    args=st.one_of(st.none(), st.dictionaries(texts, values, max_size=3)),
    result=st.one_of(st.none(), st.dictionaries(texts, values, max_size=3)),
    changes=st.lists(st.builds(StateDiff, texts, values, values), max_size=10).map(tuple),
    error=st.one_of(st.none(), st.builds(ErrorInfo, texts, texts)),
    duration=st.one_of(st.none(), st.floats(0, 1000)),
    tokens=st.one_of(st.none(), st.integers(0, 10**6)),
)


def shown(row, width=70, column=10, before=None, *, unfolded=False):
    lines = write_row(row, width, column, before, unfolded=unfolded)
    return [draw(line, color=False) for line in lines]


def test_a_line_that_is_cut_has_all_of_its_text():
    call = Row("call", 0, text="find", args={"query": "word " * 40, "deep": {"a": [1, 2]}})
    assert shown(call)[0].rstrip().endswith("…")
    assert full_line(call, 0) == f'→ find  query "{"word " * 40}"  deep {{"a": [1, 2]}}'
    assert full_line(call, 1) == ""
    state = Row("state", 0, changes=(StateDiff("plan", {"x": "y" * 90}, "z" * 90),))
    assert "…" in shown(state)[0]
    assert full_line(state, 0) == f'Δ plan  {{"x": "{"y" * 90}"}} → "{"z" * 90}"'
    assert full_line(Row("text", 0, text="word " * 90), 0) == ""


@given(rows, st.integers(24, 200), st.one_of(st.none(), rows), st.booleans())
def test_no_row_breaks_the_screen(row, width, before, unfolded):
    lines = write_row(row, width, who_width([row.who]), before, unfolded=unfolded)
    drawn = [draw(line, color=False) for line in lines]
    assert not {letter for line in drawn for letter in line if letter < " " or letter in "\x7f\u202e"}
    if row.kind in ONE_LINE:
        assert len(lines) == 1
    elif row.kind in ("text", "thought"):
        # What is wrapped fits; what has one line is cut when it is drawn.
        assert all(cells(line) <= max(width, 36) for line in lines)


def test_a_call_has_its_result_folded_behind_it():
    call = Row("call", 0, "house", "set_light", args={"room": "Kitchen"}, result={"ok": True}, duration=0.012)
    assert shown(call) == [f'{"house":<12}→ set_light  room "Kitchen"{"":>23}12 ms  ▸']
    assert shown(call, unfolded=True)[1:] == [f"{'':14}{line}" for line in ("{", '  "ok": true', "}")]


def test_messages_of_the_user_stand_apart():
    user = Row("user", 1, "you", "hi")
    assert shown(user) == [f"you         hi{'':50}turn 2"]
    assert shown(user, before=Row("text", 0, "house", "One."))[0] == ""
    assert shown(user, before=Row("code", 0, text="agent.py"))[0].startswith("you         hi")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (Row("transfer", 0, text="floor_agent"), "⇄ transfer to floor_agent"),
        (Row("state", 0, changes=(StateDiff("a.b", "on", "off"),)), 'Δ a.b  "on" → "off"'),
        (Row("state", 0, changes=(StateDiff("a", None, 1),)), "Δ a  — → 1"),
        (Row("state", 0, changes=(StateDiff("a", 1, None),)), "Δ a  1 → removed"),
        (Row("error", 0, error=ErrorInfo("ValueError", "no\nsecond", kind=None)), "! ValueError: no"),
        (Row("difference", 0), "= as before"),
        (Row("file", 0, files=(FileShown("image/png", 2048),)), "[image/png 2 KB]"),
        (Row("file", 0, files=(FileShown("", None, "gs://x"),)), "[file linked gs://x]"),
        (Row("footer", 0, duration=1.234, tokens=1200), "1.2 s  1,200 tokens"),
    ],
    ids=lambda value: value.kind if isinstance(value, Row) else "",
)
def test_what_is_said_of_each_kind(row, expected):
    assert [line.strip() for line in shown(row)] == [expected]


def test_a_long_text_is_cut_and_says_so():
    lines = shown(Row("text", 0, "a", "x" * 50_000))
    assert lines[-1].strip() == "… 38,000 more characters (enter)"
    assert len(lines) < 250


# The message


def test_files_go_along_in_the_alphabet_of_genai():
    draft = MessageDraft()
    draft.attach(Attached("a.bin", "application/octet-stream", b"\xfb\xff"))
    content = draft.content("see")
    assert content["parts"][0] == {"text": "see"}
    blob = content["parts"][1]["inline_data"]
    assert base64.urlsafe_b64decode(blob["data"]) == b"\xfb\xff"
    assert "_" in blob["data"] or "-" in blob["data"]
    assert draft.content("  ")["parts"] == content["parts"][1:]
    draft.detach()
    draft.detach()
    assert draft.content("")["parts"] == []


def test_changing_an_earlier_message_keeps_its_files_and_what_was_being_written():
    draft = MessageDraft()
    draft.attach(Attached("mine.txt", "text/plain", b"x"))
    mine = draft.content("mine")
    blob = {"inline_data": {"mime_type": "image/png", "data": "eA=="}}
    turns = [ChatTurn({"role": "user", "parts": [{"text": name}, blob]}) for name in ("one", "two")]
    assert draft.replace_turn(turns[0], "mine") == "one"
    assert draft.replace_turn(turns[1], "one, changed") == "two"
    assert draft.content("two!")["parts"] == [{"text": "two!"}, blob]
    assert "".join(text for text, _ in draft.chips(1)).startswith("in place of turn 2")
    assert draft.end() == "mine"
    assert draft.content("mine") == mine
    assert draft.instead_of is None


def test_alt_enter_is_a_new_line_in_every_terminal():
    know_alt_enter()
    keys = [event.key for event in XTermParser().feed("\x1b\r")]
    assert keys == ["ctrl+j"]
