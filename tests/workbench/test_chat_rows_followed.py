"""What is shown of a conversation, from events."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model import events as made
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import ErrorInfo
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.chat.rows import ChatRows, FileShown


def user(text):
    return {"role": "user", "parts": [{"text": text}]}


def running(*events, **more):
    return ChatTurn(user("hi"), stage=TurnStage.RUNNING, events=list(events), **more)


def piece(text, agent="a", **part):
    return Event("text", {"parts": [{"text": text, **part}]}, agent=agent, data={"partial": True})


def whole(*parts, agent="a", **fields):
    return Event("text", {"role": "model", "parts": list(parts)}, agent=agent, **fields)


def call(name, parent="", **data):
    return Event(
        "tool_call", {"parts": [{"function_call": {"name": name}}]}, id=name, parent=parent, data=data
    )


def shown(*turns):
    rows = ChatRows()
    rows.follow(Transcript("t", turns=list(turns)))
    return rows.rows


def kinds(rows):
    return [row.kind for row in rows]


def test_pieces_of_a_text_are_one_row_that_grows():
    turn = running()
    transcript = Transcript("t", turns=[turn])
    rows = ChatRows()
    assert rows.follow(transcript) == 0
    assert kinds(rows.rows) == ["user", "thinking"]
    turn.events.append(piece("Hel"))
    assert rows.follow(transcript) == 1
    assert kinds(rows.rows) == ["user", "text"]
    turn.events.append(piece("lo"))
    assert rows.follow(transcript) == 1
    assert (rows.rows[1].text, rows.rows[1].partial) == ("Hello", True)
    turn.events.append(whole({"text": "Hello!"}, data={"step": "1"}))
    rows.follow(transcript)
    assert kinds(rows.rows) == ["user", "text", "thinking"]
    assert (rows.rows[1].text, rows.rows[1].partial) == ("Hello!", False)
    assert rows.rows[1].events == (turn.events[-1],)


def test_an_output_is_a_row_of_the_node_that_returns_it():
    returned = [Event("output", agent="flow", data={"output": {"a": 1}, "node": node}) for node in ("n", "")]
    assert [(row.kind, row.who, row.text) for row in shown(running(*returned))[1:3]] == [
        ("output", "n", '{"a":1}'),
        ("output", "flow", '{"a":1}'),
    ]


def test_two_answers_of_a_model_are_two_texts():
    events = [
        piece("one"),
        whole({"text": "one"}),
        Event("model_request", agent="a"),
        piece("two"),
    ]
    assert [row.text for row in shown(running(*events)) if row.kind == "text"] == ["one", "two"]


def test_a_text_that_was_only_streamed_ends_with_the_next_request():
    rows = shown(running(piece("one"), Event("model_request", agent="a"), piece("two")))
    assert [(row.text, row.partial) for row in rows[1:]] == [("one", False), ("two", True)]


def test_agents_that_stream_at_once_are_kept_apart():
    rows = shown(running(piece("a1"), piece("b1", "b"), piece("a2"), piece("b2", "b")))
    assert [(row.who, row.text) for row in rows[1:]] == [("a", "a1a2"), ("b", "b1b2")]


def test_thoughts_and_files_have_rows_of_their_own():
    image = {"inline_data": {"mime_type": "image/png", "data": "aGVsbG8=", "display_name": "x.png"}}
    link = {"file_data": {"mime_type": "text/plain", "file_uri": "gs://x"}}
    rows = shown(
        running(
            piece("hm", thought=True),
            whole({"text": "hmm", "thought": True}, {"text": "see"}, image, link, {"text": "bye"}),
        )
    )
    assert [(row.kind, row.text) for row in rows[1:-1]] == [
        ("thought", "hmm"),
        ("text", "see"),
        ("file", ""),
        ("text", "bye"),
    ]
    assert rows[3].files == (FileShown("image/png", 5, "x.png"), FileShown("text/plain", None, "gs://x"))


def test_what_the_user_sends_is_shown_before_the_agent_hears_it():
    content = {
        "role": "user",
        "parts": [{"text": "a"}, {"inline_data": {"mime_type": "a/b", "data": ""}}, {"text": "b"}],
    }
    rows = shown(ChatTurn(content))
    assert kinds(rows) == ["user", "note"]
    assert (rows[0].who, rows[0].text, rows[0].files) == ("you", "a\nb", (FileShown("a/b", 0),))


def test_a_result_is_folded_into_its_call():
    asked = replace(made.tool_call("get", {"x": 1}, agent="a"), id="c1")
    result = Event(
        "tool_result",
        {"parts": [{"function_response": {"name": "get", "response": {"y": 2}}}]},
        parent="c1",
        duration=0.5,
    )
    turn = running(asked)
    transcript = Transcript("t", turns=[turn])
    rows = ChatRows()
    rows.follow(transcript)
    assert kinds(rows.rows) == ["user", "call"]
    waiting = rows.rows[1]
    assert (waiting.text, waiting.args, waiting.result, waiting.partial) == ("get", {"x": 1}, None, True)
    turn.events += [whole({"text": "meanwhile"}), result]
    assert rows.follow(transcript) == 1
    done = rows.rows[1]
    assert (done.result, done.duration, done.partial) == ({"y": 2}, 0.5, False)
    assert done.events == (asked, result)
    assert kinds(rows.rows) == ["user", "call", "text", "thinking"]


def test_a_result_without_its_call_is_shown():
    result = Event("tool_result", {"parts": [{"function_response": {"name": "g", "response": {"y": 2}}}]})
    assert [(row.kind, row.result) for row in shown(running(result))[1:2]] == [("result", {"y": 2})]


def test_what_happens_inside_a_call_is_deeper():
    events = [
        call("outer"),
        call("inner", "outer", nested=True),
        whole({"text": "inside"}, parent="inner", data={"nested": True}),
        Event("tool_result", {"parts": [{"function_response": {"name": "late"}}]}, parent="outer"),
        whole({"text": "outside"}),
    ]
    rows = shown(running(*events))
    assert [(row.kind, row.depth) for row in rows[1:-1]] == [
        ("call", 0),
        ("call", 1),
        ("text", 2),
        ("text", 0),
    ]


def test_state_changes_say_what_was_before():
    turn = running(
        Event("state", data={"delta": {"lights": {"hall": "off", "bath": "on"}, "new": 1}}),
        Event("state", data={"delta": {"new": 1}}),
        Event("state", data={"delta": {"new": None}, "removed": ["new"]}),
        state_before={"lights": {"hall": "on", "bath": "on"}},
    )
    rows = [row for row in shown(turn) if row.kind == "state"]
    assert [[(diff.path, diff.expected, diff.actual) for diff in row.changes] for row in rows] == [
        [("lights.hall", "on", "off"), ("new", None, 1)],
        [("new", 1, None)],
    ]


def test_transfers_and_errors_are_where_they_happened():
    events = [
        made.transfer("floor", agent="a"),
        Event("error", agent="floor", data={"message": "blocked"}),
        whole({"text": "sorry"}, agent="floor"),
    ]
    rows = shown(running(*events))
    assert [(row.kind, row.who, row.text) for row in rows[1:]] == [
        ("transfer", "a", "floor"),
        ("error", "floor", ""),
        ("text", "floor", "sorry"),
        ("thinking", "floor", ""),
    ]
    assert rows[2].error == ErrorInfo("Error", "blocked", kind=None)


@pytest.mark.parametrize(
    ("stage", "ends"),
    [
        (TurnStage.DONE, []),
        (TurnStage.FAILED, ["error"]),
        (TurnStage.CANCELLED, ["note"]),
    ],
)
def test_a_turn_ends_with_how_it_ended(stage, ends):
    turn = ChatTurn(
        user("hi"), stage=stage, events=[piece("x")], spent=1.5, error=ErrorInfo("E", "no", kind=None)
    )
    rows = shown(turn)
    assert kinds(rows)[2:] == ends
    assert (rows[1].partial, rows[1].duration) == (False, 1.5)


def test_tokens_are_counted_once():
    usage = {"prompt_token_count": 3, "candidates_token_count": 4}
    steps = [whole({"text": "x"}, usage={"total_token_count": 7})]
    done = {"stage": TurnStage.DONE, "spent": 0.1}
    assert shown(ChatTurn(user("hi"), events=steps, **done))[-1].tokens == 7
    asked = [Event("model_response", usage=usage), *steps, Event("model_response", usage=usage)]
    assert shown(ChatTurn(user("hi"), events=asked, **done))[-1].tokens == 14
    assert shown(ChatTurn(user("hi"), **done))[-1].tokens is None


def test_new_code_is_told_before_the_turn_that_runs_on_it():
    turn = running()
    transcript = Transcript("t", turns=[ChatTurn(user("a"), stage=TurnStage.DONE), turn])
    rows = ChatRows()
    rows.follow(transcript)
    turn.new_code = ("agent.py", "tools.py")
    assert rows.follow(transcript) == 1
    assert [(row.kind, row.text) for row in rows.rows[1:3]] == [
        ("code", "agent.py, tools.py"),
        ("user", "hi"),
    ]


def test_going_back_takes_rows_away():
    first, second, other = (ChatTurn(user(text)) for text in "abc")
    transcript = Transcript("t", turns=[first, second])
    rows = ChatRows()
    rows.follow(transcript)
    transcript.turns = [first, other]
    assert rows.follow(transcript) == 2
    users = [(number, row.text) for number, row in enumerate(rows.rows) if row.kind == "user"]
    assert users == [(0, "a"), (2, "c")]
    transcript.turns = [first]
    assert (rows.follow(transcript), len(rows.rows)) == (2, 2)
    assert (rows.follow(None), rows.rows) == (0, [])


def test_a_turn_in_the_middle_may_grow():
    turn, waiting = running(), ChatTurn(user("later"))
    transcript = Transcript("t", turns=[turn, waiting])
    rows = ChatRows()
    rows.follow(transcript)
    turn.events.append(whole({"text": "x"}))
    assert rows.follow(transcript) == 1
    assert kinds(rows.rows) == ["user", "text", "thinking", "user", "note"]


EVENTS = st.one_of(
    st.builds(piece, st.sampled_from(["x", "", "y\n"]), st.sampled_from("ab"), thought=st.booleans()),
    st.builds(
        lambda text, agent: whole({"text": text}, agent=agent), st.text(max_size=3), st.sampled_from("ab")
    ),
    st.builds(call, st.sampled_from(["1", "2"]), st.sampled_from(["", "1"])),
    st.builds(
        lambda parent: Event("tool_result", {"parts": [{"function_response": {}}]}, parent=parent),
        st.sampled_from(["", "1", "2", "3"]),
    ),
    st.builds(
        lambda key, value: Event("state", data={"delta": {key: value}}),
        st.sampled_from("kl"),
        st.sampled_from([None, 1, {"a": 2}]),
    ),
    st.sampled_from([Event("model_request", agent="a"), made.transfer("b"), Event("user", user("hi"))]),
)
STEPS = st.lists(st.one_of(EVENTS, st.sampled_from(["new", "back", *TurnStage])), max_size=25)


@given(STEPS)
def test_rows_that_were_followed_are_those_made_at_once(steps):
    transcript = Transcript("t", turns=[running()])
    followed = ChatRows()
    followed.follow(transcript)
    for step in steps:
        before = list(followed.rows)
        turns = transcript.turns
        if step == "new":
            transcript.turns = [*turns, running()]
        elif step == "back":
            transcript.turns = turns[:-1] or turns
        elif isinstance(step, TurnStage):
            if turns[-1].stage is TurnStage.RUNNING:
                turns[-1].stage, turns[-1].spent = step, 1.0
        elif turns[-1].stage is TurnStage.RUNNING:
            turns[-1].events.append(step)
        first = followed.follow(transcript)
        assert all(now is was for now, was in zip(followed.rows[:first], before[:first], strict=True))
        assert followed.follow(transcript) == len(followed.rows)
    at_once = ChatRows()
    at_once.follow(transcript)
    assert followed.rows == at_once.rows


def test_an_answer_that_begins_again_is_a_row_of_its_own():
    broken = Event("error", agent="a", data={"message": "it broke off", "text_is_void": True})
    rows = shown(running(piece("One m"), broken, piece("One more"), whole({"text": "One more."})))
    assert [(row.kind, row.text) for row in rows if row.kind in ("text", "error")] == [
        ("text", "One m"),
        ("error", ""),
        ("text", "One more."),
    ]
