from __future__ import annotations

import io
import sys

import pytest

from evaltui.commands.chat_lines import ChatLines
from evaltui.core.model.events import Event, Step, split_step, tool_call, tool_result, transfer
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.secrets import Secrets


@pytest.fixture
def lines():
    shown = ChatLines("chat")
    shown.on_session("house", {"mode": "night", "log": []})
    return shown


def said(*parts, agent="house", **data):
    return Event("text", {"role": "model", "parts": list(parts)}, agent=agent, data=data)


def text(message, **more):
    return said({"text": message}, **more)


def piece(message):
    return text(message, partial=True)


def shown(lines, capsys, *events):
    for event in events:
        lines.on_event(event)
    lines.end_turn()
    return capsys.readouterr().out


def test_what_happens_is_a_line_each(lines, capsys):
    events = [
        tool_call("set_light", {"room": "Kitchen", "on": True}, agent="house"),
        tool_result("set_light", {"ok": True}, agent="house"),
        Event("state", agent="house", data={"delta": {"mode": "day", "lights": {"Kitchen": "ON"}}}),
        Event("state", agent="house", data={"delta": {"lights": None}}),
        transfer("floor", agent="house"),
        tool_call("list_rooms", agent="floor"),
        text("Two rooms.\nBoth are dark.", agent="floor"),
        Event("model_request", agent="house"),
        Event("user", {"parts": [{"text": "hello"}]}),
    ]
    assert shown(lines, capsys, *events).splitlines() == [
        '  → set_light  room "Kitchen", on true',
        '  ← set_light  {"ok": true}',
        '  state  mode  "night" → "day"',
        '  state  lights = {"Kitchen": "ON"}',
        '  state  lights  {"Kitchen": "ON"} → null',
        "  ↳ transfer to floor",
        "  floor: → list_rooms",
        "floor: Two rooms.",
        "Both are dark.",
    ]


def test_a_text_is_shown_once_however_it_streams(lines, capsys):
    whole = "It is dark.\nVery."
    out = [piece("It is"), piece(" dark.\r"), piece("\nVery."), text("It is dark.\r\nVery.")]
    assert shown(lines, capsys, *out) == f"{whole}\n"
    assert shown(lines, capsys, piece("It is"), text(whole)) == f"{whole}\n"
    assert shown(lines, capsys, piece("It was"), text(whole)) == f"It was\n{whole}\n"
    assert shown(lines, capsys, text(whole), text(whole)) == f"{whole}\n" * 2
    assert shown(lines, capsys, piece("It is"), piece("")) == "It is\n"
    # The next turn begins anew, also after one that did not end.
    assert shown(lines, capsys, text("It is")) == "It is\n"
    lines.on_event(piece("It is"))
    lines.failed("turn 2 failed", ErrorInfo("E", "late", kind=None))
    lines.on_session("house", {})
    assert shown(lines, capsys, text("It is")) == "It is\nIt is\n"


def test_a_step_streams_past_its_calls(lines, capsys):
    parts = [{"text": "I look."}, tool_call("look").content["parts"][0], {"text": "Wait."}]
    step = split_step(Step("house", {"role": "model", "parts": parts}, id="1"))
    assert shown(lines, capsys, piece("I look."), piece("Wait."), *step) == "I look.Wait.\n  → look\n"


def test_what_is_printed_meanwhile_does_not_break_a_text(lines, capsys):
    lines.on_event(piece("It is"))
    lines.printed("stdout", "ho\x1b[2J")
    lines.on_event(piece(" dark."))
    assert capsys.readouterr().err == ""
    lines.on_event(text("It is dark."))
    lines.on_event(tool_call("look"))
    assert capsys.readouterr() == ("\n  → look\n", "| ho\\x1b[2J\n")
    lines.printed("stderr", "at once")
    assert capsys.readouterr().err == "| at once\n"


def test_what_runs_inside_a_tool_is_further_in(lines, capsys):
    nested = {"agent": "guide", "nested": True}
    call = Event("tool_call", tool_call("rain").content, agent="guide", data={"nested": True})
    assert shown(lines, capsys, call, text("It\nrains.", **nested), text("It", partial=True, **nested)) == (
        "    guide: → rain\n    guide: It\\nrains.\n"
    )


def test_thoughts_and_files_are_told_apart(lines, capsys):
    picture = {"inline_data": {"mime_type": "image/png", "data": "AAAA-_8="}}
    link = {"file_data": {"mime_type": "text/plain", "file_uri": "gs://a\n"}}
    event = said({"text": "Hm.\nSo.", "thought": True}, {"text": "Look"}, {"text": "here"}, picture, link)
    assert shown(lines, capsys, event).splitlines() == [
        "  thought  Hm.\\nSo.",
        "Look",
        "here",
        "  [image/png 5 B]",
        "  [text/plain at gs://a\\n]",
    ]


def test_nothing_of_an_agent_is_obeyed_by_the_terminal(lines, capsys):
    evil = "\x1b]0;x\x07\u202e\x9b2J"
    lines.on_session("house", {})
    lines.on_event(tool_call(evil, {evil: evil}, agent=evil))
    lines.on_event(tool_result(evil, {evil: evil}, agent=evil))
    lines.on_event(Event("state", agent=evil, data={"delta": {evil: evil}}))
    lines.on_event(transfer(evil, agent=evil))
    lines.on_event(piece(evil))
    lines.on_event(text(evil + "more", agent=evil))
    lines.on_event(Event("error", data={"message": evil}))
    lines.printed("stderr", evil)
    lines.show_user_message(evil)
    lines.failed("turn 1 failed", ErrorInfo("E", evil, f"File {evil}", evil, kind=None))
    lines.failed("turn 1 failed", ErrorInfo(evil, evil, kind=None))
    out, err = capsys.readouterr()
    assert "more" in out
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(out + err)


def test_an_error_comes_with_its_traceback(lines, capsys):
    trace = 'Traceback (most recent call last):\n  File "agent.py", line 1\nValueError: one\ntwo'
    lines.on_event(piece("I try"))
    lines.failed("turn 2 failed", ErrorInfo("ValueError", "one\ntwo", trace, "agent.py:1", kind=None))
    out, err = capsys.readouterr()
    assert out == "I try\n"
    assert err.splitlines() == [
        "evaltui chat: turn 2 failed: agent.py:1: ValueError: one",
        *(f"  {line}" for line in trace.splitlines()),
    ]
    lines.failed("turn 2 failed", ErrorInfo("ValueError", "one\ntwo", "ValueError: one\ntwo", kind=None))
    assert capsys.readouterr().err.splitlines() == [
        "evaltui chat: turn 2 failed: ValueError: one",
        "  two",
    ]


def test_what_the_user_says_may_have_several_lines(lines, capsys):
    lines.show_user_message("one\ntwo")
    assert capsys.readouterr().out == "> one\n  two\n"


def test_that_nobody_reads_is_noticed_and_raises_nothing(lines, monkeypatch):
    class Gone(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Gone())))
    lines.on_event(piece("hello"))
    lines.on_event(tool_call("look"))
    lines.end_turn()
    assert lines.unread
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))


def test_an_answer_that_begins_again_is_shown_from_its_start(lines, capsys):
    broken = Event("error", agent="house", data={"message": "it broke off", "text_is_void": True})
    assert shown(lines, capsys, piece("One m"), broken, piece("One more"), text("One more.")) == (
        "One m\nOne more.\n"
    )


def test_an_exception_that_the_agent_goes_on_after_is_shown_with_its_place(lines, capsys):
    data = {"type": "KeyError", "message": "'order 7'", "where": "agent.py:9 in find"}
    lines.on_event(Event("error", agent="house", data=data))
    assert capsys.readouterr().err == "! agent.py:9 in find: KeyError: 'order 7'\n"


def test_secrets_are_masked_however_they_stream_in(capsys):
    shown = ChatLines("chat", Secrets({"SHOP_KEY": "c0rrect-h0rse", "SHOP_PASSWORD": "two w0rds here"}))
    shown.on_session("agent", {})
    pieces = ["the key is c0rr", "ect-h0", "rse, not two w0", "rds here, and AKIAIOSF"]
    pieces += ["ODNN7EXAMPLE", " too"]
    for piece in pieces:
        shown.on_event(
            Event("text", agent="agent", content={"parts": [{"text": piece}]}, data={"partial": True})
        )
    shown.on_event(Event("text", agent="agent", content={"parts": [{"text": "".join(pieces)}]}))
    shown.on_event(Event("error", data={"message": "no c0rrect-h0rse"}))
    shown.printed("stdout", "prints c0rrect-h0rse")
    shown.end_turn()
    printed = capsys.readouterr()
    assert printed.out == "the key is <SHOP_KEY>, not <SHOP_PASSWORD>, and <key> too\n"
    assert printed.err == "! no <SHOP_KEY>\n| prints <SHOP_KEY>\n"
