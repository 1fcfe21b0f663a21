"""Contents: text as it is, everything else as what it is and how big."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.genai import types

from evaltui.text.lines import Line, Span
from evaltui.text.values import show_size, show_value, visible, visible_block
from evaltui.tui.pages.calls import inline_args

_MAX_VALUE = 400


def content_spans(parts: Sequence[types.Part] | None) -> Line:
    """The parts of a content, one below the other: `look at this`, `[image/png 34 KB]`."""
    spans: Line = []
    for part in parts or []:
        for span in _part(part):
            spans += [("\n", ""), span] if spans else [span]
    return spans


def _part(part: types.Part) -> Iterator[Span]:
    if part.text:
        yield shown_text(part.text), "dim" if part.thought else ""
        if part.thought:
            yield "[a thought: not scored]", "dim"
    elif part.inline_data is not None:
        kind = visible(part.inline_data.mime_type or "data")
        yield f"[{kind} {show_size(len(part.inline_data.data or b''))}]", "accent"
    elif part.file_data is not None:
        kind = visible(part.file_data.mime_type or "file")
        yield f"[{kind} at {visible(part.file_data.file_uri or '?')}]", "accent"
    elif call := part.function_call:
        yield f"[call {visible(call.name or '?')}{inline_args(call.args)}]", "accent"
    elif response := part.function_response:
        yield (
            f"[response of {visible(response.name or '?')}  {show_value(response.response, _MAX_VALUE)}]",
            "accent",
        )
    elif part.executable_code is not None:
        yield shown_text(f"[code]\n{part.executable_code.code or ''}"), "accent"
    elif part.code_execution_result is not None:
        yield shown_text(f"[output of code]\n{part.code_execution_result.output or ''}"), "accent"
    elif part.text is None:
        yield "[a part of another kind]", "accent"


def shown_text(text: str) -> str:
    """A text of several lines as the terminal may have it."""
    return visible_block(text)
