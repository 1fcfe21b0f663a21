"""The recordings of agentevals, each with the turns that are in it: evaltui reads the same ones."""

import json

import pytest

from evaltui.traces.conversations import conversations_in
from evaltui.traces.reading import read_file

# Several calls at once: theirs are in the order in which they began, ours in that in which the model asked.
ORDERED_OTHERWISE = ["kagent/v1.0.0-alpha9/adk_go_1turn", "kagent/v1.0.0-alpha9/adk_go_2turn"]


def text(value):
    said = value if isinstance(value, str | None) else json.dumps(value, sort_keys=True)
    return (said or "").strip() or None


def unpacked(value):
    """A value of an argument or a result, of which some producers make text or `{"result": …}`."""
    if isinstance(value, str):
        try:
            return unpacked(json.loads(value))
        except ValueError:
            return value
    if isinstance(value, dict) and set(value) == {"result"}:
        return unpacked(value["result"])
    return None if value in ({}, "", []) else value


def is_error(result):
    """Whether a tool answered that it failed: ours is a result like any other."""
    return isinstance(result, dict) and "error" in result


def in_truth(turn):
    calls = [(one, unpacked(one["result"])) for one in turn["tool_calls"]]
    return {
        "user": text(turn["user_text"]),
        "texts": [text(one) for one in (*turn["intermediate_texts"], turn["final_text"]) if text(one)],
        "calls": [(one["name"], unpacked(one["args"]), result, one["is_error"]) for one, result in calls],
        "tokens": tuple(turn["tokens"].values()) if turn.get("tokens") else None,
        "model_calls": turn.get("llm_calls"),
        "agents": sorted(turn["agents"]),
    }


def parts(turn, name):
    """Those of the events themselves: what a model answered has its calls once more."""
    events = (event for event in turn.events if event.kind != "model_response")
    return [part[name] for event in events for part in (event.content or {}).get("parts", ()) if name in part]


def in_events(turn):
    results = {one["id"]: unpacked(one.get("response")) for one in parts(turn, "function_response")}
    failed = {event.parent for event in turn.events if event.kind == "error"}
    usages = [event.usage or {} for event in turn.events if event.kind == "model_response"]
    said = [event for event in turn.events if event.kind == "text" and not event.data.get("nested")]
    texts = [
        "\n".join(
            part["text"] for part in event.content["parts"] if part.get("text") and not part.get("thought")
        )
        for event in said
    ]
    return {
        "user": text(turn.user),
        "texts": [text(one) for one in texts if text(one)],
        "calls": [
            (
                call["name"],
                unpacked(call.get("args")),
                results.get(call["id"]),
                call["id"] in failed or is_error(results.get(call["id"])),
            )
            for call in parts(turn, "function_call")
        ],
        "tokens": (
            sum(one.get("prompt_token_count") or 0 for one in usages),
            sum(
                (one.get("candidates_token_count") or 0) + (one.get("thoughts_token_count") or 0)
                for one in usages
            ),
        ),
        "model_calls": sum(event.kind == "model_request" for event in turn.events),
        "agents": sorted({event.agent for event in turn.events if event.agent}),
    }


def read(file, truth):
    """What is in a recording, as far as the truth says something of it."""
    found = conversations_in(read_file(file)).conversations
    wanted = list(map(in_truth, truth["turns"]))
    turns = [in_events(turn) for one in found for turn in one.turns]
    if truth.get("extra_turns_allowed"):
        turns = [one for one in turns if one["user"] in {turn["user"] for turn in wanted}]
    for ours, theirs in zip(turns, wanted, strict=False):
        ours.update({name: None for name in ("tokens", "model_calls") if theirs[name] is None})
    sessions = [one.id for one in found] if truth.get("session_key") else None
    return (turns, sessions), (wanted, [truth["session_key"]["value"]] if truth.get("session_key") else None)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_turns_calls_texts_tokens_and_sessions_are_the_same(agentevals_source):
    folder = agentevals_source / "tests" / "fixtures" / "otlp"
    others, names = [], []
    for file in sorted(folder.rglob("*.truth.json")):
        name = file.relative_to(folder).as_posix().removesuffix(".truth.json")
        names.append(name)
        truth = json.loads(file.read_text())
        ours, theirs = read(file.with_name(f"{file.name.removesuffix('.truth.json')}.json"), truth)
        if name in ORDERED_OTHERWISE:
            assert ours != theirs
            for turn in (*ours[0], *theirs[0]):
                turn["calls"].sort(key=repr)
        if ours != theirs:
            others.append((name, ours, theirs))
    assert others == []
    assert len(names) == 170
    assert {*ORDERED_OTHERWISE} < {*names}
