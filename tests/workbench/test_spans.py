"""Events as a tree of spans, the requests and the graph that are read from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.events import Event, text, tool_call, tool_result, transfer
from evaltui.core.trace.spans import Span, SpanTree, request_of
from evaltui.tui.trace.span import graph_of
from evaltui.workbench.trace.traces import GAP, Outline, problem_of


def said(message, turn=0, t=0.0):
    return Event("user", {"role": "user", "parts": [{"text": message}]}, turn=turn, t=t)


def asked(agent, id, turn=0, parent="", t=0.0, **data):
    return Event(
        "model_request", agent=agent, id=id, turn=turn, parent=parent, t=t, data={"model": "m", **data}
    )


def answered(agent, parent, turn=0, t=0.0, usage=None):
    content = {"role": "model", "parts": [{"text": "x"}]}
    return Event("model_response", content, agent=agent, parent=parent, turn=turn, t=t, usage=usage)


def called(agent, name, id, turn=0, parent="", t=0.0, nested=False):
    event = tool_call(name, {}, id=id, agent=agent)
    data = {"nested": True} if nested else {}
    return Event("tool_call", event.content, agent=agent, id=id, parent=parent, turn=turn, t=t, data=data)


def returned(agent, name, id, turn=0, t=0.0):
    content = tool_result(name, {}, id=id).content
    return Event("tool_result", content, agent=agent, parent=id, turn=turn, t=t)


NESTED = [
    said("hello"),
    asked("root", "r1", t=0.1, tools=[{"name": "guide"}, {"name": "idle"}]),
    answered("root", "r1", t=0.4, usage={"total_token_count": 7}),
    called("root", "guide", "c1", t=0.5),
    asked("inner", "r2", parent="c1", t=0.6, tools=[{"name": "look"}]),
    answered("inner", "r2", t=0.7, usage={"prompt_token_count": 2, "candidates_token_count": 3}),
    called("inner", "look", "c2", parent="c1", t=0.8, nested=True),
    returned("inner", "look", "c2", t=0.9),
    returned("root", "guide", "c1", t=1.0),
    Event("text", text("Done.").content, agent="root", turn=0, t=1.1),
]


def tree_of(events):
    tree = SpanTree()
    tree.add(events)
    return tree


def shape(tree, number):
    span = tree.spans[number]
    return (span.kind, [shape(tree, child) for child in span.children])


def test_what_runs_inside_a_tool_is_inside_its_span():
    tree = tree_of(NESTED)
    inner = ("agent", [("model", []), ("tool", [])])
    assert [shape(tree, turn.number) for turn in tree.turns] == [
        ("turn", [("agent", [("model", []), ("tool", [inner]), ("text", [])])])
    ]
    guide = tree.call(0, 0)
    assert guide is not None
    assert (guide.start, guide.end) == (0.5, 1.0)
    assert tree.call(0, 1) is None
    assert tree.tokens == 12


def test_a_transfer_gives_each_agent_a_span_of_its_own():
    events = [
        said("hello"),
        asked("front", "r1"),
        answered("front", "r1"),
        Event("transfer", agent="front", data={"to": "back"}, turn=0),
        asked("back", "r2"),
        answered("back", "r2"),
        asked("front", "r3"),
    ]
    agents = [span.agent for span in tree_of(events).spans if span.kind == "agent"]
    assert agents == ["front", "back", "front"]


def test_agents_that_work_side_by_side_have_one_span_each():
    events = [said("hello")]
    for number in range(3):
        for agent in ("left", "right"):
            events.append(asked(agent, f"{agent}{number}"))
            events.append(Event("text", text("x").content, agent=agent, branch=f"both.{agent}", turn=0))
    agents = [span.agent for span in tree_of(events).spans if span.kind == "agent"]
    assert agents[-2:] == ["left", "right"] or len(agents) <= 4
    assert len([agent for agent in agents if agent == "left"]) <= 2


def test_a_streamed_text_is_one_span_with_the_whole_text():
    pieces = [
        Event("text", text(piece).content, agent="a", turn=0, data={"partial": True})
        for piece in ("He", "llo")
    ]
    tree = tree_of([said("x"), *pieces, Event("text", text("Hello").content, agent="a", turn=0)])
    [streamed] = [span for span in tree.spans if span.kind == "text"]
    assert len(streamed.events) == 3


def test_an_error_marks_everything_that_it_happened_in_but_an_attempt_that_is_made_again_does_not():
    failed = Event("error", agent="inner", parent="r2", turn=0, data={"message": "no"})
    tree = tree_of([*NESTED[:5], failed])
    assert [span.kind for span in tree.spans if span.failed] == ["turn", "agent", "tool", "agent", "model"]
    retried = Event("error", agent="root", parent="r1", turn=0, data={"message": "429", "retrying": True})
    assert not any(span.failed for span in tree_of([*NESTED[:2], retried]).spans)


agents = st.sampled_from(["a", "b"])
turns = st.integers(0, 2)


@st.composite
def random_events(draw):
    events: list[Event] = []
    calls: list[str] = []
    requests: list[str] = []
    turn = -1
    for number in range(draw(st.integers(0, 40))):
        kind = draw(
            st.sampled_from(["user", "request", "response", "call", "result", "text", "console", "state"])
        )
        if turn < 0 and draw(st.booleans()):
            kind = "user"
        parent = draw(st.sampled_from(["", *calls[-3:]]))
        at, agent = max(turn, 0), draw(agents)
        match kind:
            case "user":
                turn += 1
                events.append(said("x", turn, number))
            case "request":
                requests.append(f"r{number}")
                events.append(asked(agent, f"r{number}", at, parent, number))
            case "response" if requests:
                events.append(answered(agent, draw(st.sampled_from(requests)), at, number))
            case "call":
                events.append(called(agent, "t", f"c{number}", at, parent, number, nested=bool(parent)))
                calls.append(f"c{number}")
            case "result" if calls:
                events.append(returned(agent, "t", draw(st.sampled_from(calls)), at, number))
            case "console":
                events.append(Event("console", turn=None, t=number, data={"text": "x", "source": "stdout"}))
            case "state":
                events.append(Event("state", agent=agent, turn=at, t=number, data={"delta": {"k": number}}))
            case _:
                partial = {"partial": True} if draw(st.booleans()) else {}
                events.append(Event("text", text("x").content, agent=agent, turn=at, t=number, data=partial))
    return events


@given(random_events(), st.integers(1, 7))
def test_every_event_is_in_one_span_and_rows_grow_as_if_made_at_once(events, step):
    outline = Outline()
    for start in range(0, len(events), step):
        outline.add(events[start : start + step])
        assert len(outline.rows) == len(outline.tree.spans) + max(0, len(outline.tree.turns) - 1)
    whole = Outline()
    whole.add(events)
    assert outline.rows == whole.rows
    spans: list[Span] = outline.tree.spans
    held = [event for span in spans for event in span.events]
    assert sorted(map(id, held)) == sorted(map(id, events))
    for span in spans:
        for child in span.children:
            assert spans[child].parent == span.number
            assert spans[child].depth == span.depth + 1
            assert span.start <= spans[child].start
            assert spans[child].end <= span.end


@given(random_events(), st.data())
def test_what_is_folded_is_hidden_and_nothing_else(events, data):
    outline = Outline()
    outline.add(events)
    with_children = [span.number for span in outline.tree.spans if span.children]
    folded = set(data.draw(st.lists(st.sampled_from(with_children), unique=True))) if with_children else set()
    for number in folded:
        outline.toggle(number)
    hidden = {span.number for span in outline.tree.spans if folded & set(outline.tree.ancestors(span.number))}
    assert set(outline.rows) - {GAP} == {span.number for span in outline.tree.spans} - hidden
    for number in hidden:
        row = outline.row_of(number)
        assert row is not None
        assert outline.rows[row] == number
        break


def test_a_search_keeps_what_it_finds_and_what_that_ran_in():
    outline = Outline()
    outline.add(NESTED)

    def found(text):
        outline.set_search(text)
        return [outline.tree.spans[number].kind for number in outline.rows]

    assert found("kind:model agent:inner") == ["turn", "agent", "tool", "agent", "model"]
    assert found('"Done."') == ["turn", "agent", "text"]
    assert found("kind:tool -look") == ["turn", "agent", "tool"]
    assert found("nowhere") == []
    assert len(found("")) == len(outline.tree.spans)
    assert "Did you mean model" in problem_of("kind:modle")
    assert problem_of("kind:model done") == ""


def content(message):
    return {"role": "user", "parts": [{"text": message}]}


def test_a_request_is_put_together_and_says_what_is_new():
    events = [
        said("hi"),
        asked(
            "a",
            "r1",
            contents=[content("1"), content("2")],
            system_instruction="Be kind.",
            tools=[{"name": "t"}],
        ),
        answered("a", "r1"),
        asked("b", "r2", contents=[content("other")]),
        asked("a", "r3", contents=[content("3")], contents_before=2, system_instruction="Be brief."),
        asked("a", "r4", contents=[content("new")], contents_before=1, system_instruction="Be brief."),
    ]
    tree = tree_of(events)
    models = [span.number for span in tree.spans if span.kind == "model"]
    first, other, third, fourth = (request_of(tree.spans, number) for number in models)
    assert first is not None
    assert first.is_first
    assert len(first.contents) == 2
    assert other is not None
    assert other.contents == (content("other"),)
    assert third is not None
    assert (third.new, third.contents) == (2, (content("1"), content("2"), content("3")))
    assert third.changes == ("system instruction changed", "fewer tools: t")
    assert fourth is not None
    assert fourth.contents == (content("1"), content("new"))
    assert fourth.changes == ("2 earlier contents dropped or changed",)


def test_the_graph_has_tools_that_were_not_called_and_the_path():
    graph = graph_of(tree_of(NESTED).spans, 0)
    root, inner = graph.agents
    assert [(tool.name, tool.steps) for tool in root.tools.values()] == [("guide", [2]), ("idle", [])]
    assert (inner.name, inner.inside, list(inner.tools)) == ("inner", "guide", ["look"])
    assert [(step.place, step.name, step.depth) for step in graph.path] == [
        (1, "root", 0),
        (2, "guide", 1 - 1),
        (3, "inner", 1),
        (4, "look", 1),
    ]
    handed = [
        said("x"),
        Event("transfer", transfer("back").content, agent="front", turn=0, data={"to": "back"}),
    ]
    assert graph_of(tree_of(handed).spans, 0).agents[0].handed_over == [("back", 2)]
