"""Items of OpenAI's Responses API that a model may send: each is content that a turn can hold."""

from __future__ import annotations

import pytest

from evaltui.agents.adapters.openai_agents.items import output_contents
from evaltui.core.model.eval_set import Invocation

USER = {"role": "user", "parts": [{"text": "hi"}]}


def message(*texts):
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}


@pytest.mark.parametrize(
    ("items", "texts"),
    [
        (
            [{"id": "l", "type": "mcp_list_tools", "server_label": "s", "tools": []}, message("Done.")],
            ["Done."],
        ),
        ([{"id": "a", "type": "mcp_approval_request", "name": "x", "arguments": "{}"}], []),
        ([message("")], [""]),
        ([message("", "Done.")], ["", "Done."]),
    ],
)
def test_what_genai_has_no_part_for_is_no_error_and_no_text(items, texts):
    [content] = output_contents(items)
    turn = Invocation.model_validate({"user_content": USER, "final_response": content})
    assert [part.text for part in turn.final_response.parts if not part.thought] == texts
