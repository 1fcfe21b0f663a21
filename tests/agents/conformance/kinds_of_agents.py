"""Which kind of agent can do what: the table of the guide, and what the questions of this folder expect."""

from __future__ import annotations

from collections.abc import Iterator

KINDS = {
    "adk": "google-adk",
    "native": "`evaltui.Agent`",
    "function": "function",
    "openai": "OpenAI Agents",
    "pydantic": "Pydantic AI",
    "langgraph": "LangGraph",
    "api": "`api_server`",
    "a2a": "A2A",
}
YES, NO = "yes", "–"
_OUTSIDE = {"function": NO, "api": NO, "a2a": NO}
QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "known": ("its tools, with their places", {"function": NO, "api": "tools", "a2a": NO}),
    "trajectory": ("calls and results", {}),
    "parallel": ("calls at the same time, results in their order", {"langgraph": "as they come"}),
    "requests": ("model requests, the time of each", _OUTSIDE),
    "usage": ("tokens", {"function": NO}),
    "served": ("the version of the model that served", {"function": NO, "openai": NO, "a2a": NO}),
    "thoughts": ("thoughts", {"function": NO}),
    "streaming": (
        "text as it comes",
        dict.fromkeys(("adk", "openai", "pydantic", "langgraph", "api", "a2a"), NO),
    ),
    "state": ("state: initial, changes, final", {"a2a": "changes"}),
    "files": ("files in a message", {}),
    "past": ("goes on from past turns", {"a2a": "its own"}),
    "waiting": ("waits for a person", {"native": NO, "function": NO}),
    "waiting_past": (
        "goes on from a turn that waits",
        {"native": NO, "function": NO, "langgraph": NO, "api": NO},
    ),
    "nested": (
        "agents in tools",
        {"native": NO, "function": NO, "api": NO, "a2a": NO},
    ),
    "transfer": ("transfers", {"native": NO, "pydantic": NO}),
    "tool_error": ("a tool's exception with its place", {"api": "name", "a2a": "text"}),
    "model_error": ("a model's exception", {"a2a": "text"}),
    "cancel": ("goes on after a turn that was cancelled", {}),
    "timeout": ("a time-out names the call that was running", {"api": "request", "a2a": "request"}),
    "replay": ("recording and replay of models", _OUTSIDE),
    "stubs": ("stubs of tools", _OUTSIDE),
    "stubbed_state": ("state that a stubbed tool changed", _OUTSIDE | {"langgraph": NO}),
    "gaps": ("[unreached tools](results.md#what-a-set-would-miss)", {"function": NO, "a2a": NO}),
    "limits": ("limits of models, asked again", _OUTSIDE),
}
"""By id: what the guide calls it, and how a kind differs from `YES`."""


def cell(kind: str, question: str) -> str:
    return QUESTIONS[question][1].get(kind, YES)


def lines(_: str = "") -> Iterator[str]:
    """The table as Markdown."""
    yield f"| | {' | '.join(KINDS.values())} |"
    yield f"|---|{'---|' * len(KINDS)}"
    for question, (title, _others) in QUESTIONS.items():
        yield f"| {title} | {' | '.join(cell(kind, question) for kind in KINDS)} |"
