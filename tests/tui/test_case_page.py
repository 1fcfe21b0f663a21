"""The page of a case has everything that the case says."""

from datetime import UTC, datetime

from pilots import write_case

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.text.figures import show_local
from evaltui.tui.widgets.writer import Page

FULL = {
    "eval_id": "everything",
    "creation_timestamp": 1_760_000_000.0,
    "owner": "ann",
    "session_input": {"app_name": "house", "user_id": "ann", "state": {"mode": "night", "rooms": 3}},
    "final_session_state": {"mode": "day"},
    "rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "Says please"}}],
    "conversation": [
        {
            "user_content": {
                "role": "user",
                "parts": [
                    {"text": "What is this?"},
                    {"inline_data": {"mime_type": "image/png", "data": "QUFB" * 11_605}},
                    {"file_data": {"mime_type": "application/pdf", "file_uri": "gs://bucket/a.pdf"}},
                ],
            },
            "intermediate_data": {
                "tool_uses": [{"name": "look", "args": {"zoom": 2}}],
                "tool_responses": [{"name": "look", "response": {"seen": "a cat"}}],
                "intermediate_responses": [["helper", [{"text": "let me see"}]]],
            },
            "final_response": {
                "role": "model",
                "parts": [{"text": "hm", "thought": True}, {"text": "A cat."}],
            },
            "rubrics": [{"rubric_id": "short", "rubric_content": {"text_property": "Is short"}}],
        },
        {"user_content": {"parts": [{"text": "Thanks"}]}, "intermediate_data": {"tool_uses": []}},
        {"user_content": {"parts": [{"text": "Bye"}]}},
        {"user_content": {"parts": [{"text": "Skipped"}]}},
        {"user_content": {"parts": [{"text": "Context"}]}},
        {
            "user_content": {"parts": [{"text": "Recorded"}]},
            "intermediate_data": {
                "invocation_events": [
                    {"author": "agent", "content": {"parts": [{"function_call": {"name": "ring"}}]}},
                    {
                        "author": "agent",
                        "content": {
                            "parts": [{"function_response": {"name": "ring", "response": {"ok": 1}}}]
                        },
                    },
                    {"author": "agent", "content": {"parts": [{"text": "rang"}]}},
                ]
            },
        },
    ],
}
CONFIG = {
    "criteria": {"response_match_score": 0.5},
    "evaltui": {
        "turns": [
            {"set": "house", "case": "everything", "turn": 3, "mode": "skip"},
            {"set": "house", "case": "everything", "turn": 4, "mode": "context"},
        ]
    },
}
SCENARIO = {
    "eval_id": "simulated",
    "conversation_scenario": {
        "starting_prompt": "Hi there",
        "conversation_plan": "Ask for the weather",
        "user_persona": {
            "id": "hasty",
            "description": "Has no time",
            "behaviors": [
                {
                    "name": "interrupts",
                    "description": "Cuts in",
                    "behavior_instructions": ["Be short"],
                    "violation_rubrics": ["Waits"],
                }
            ],
        },
    },
}


def ends(left, right, width=89):
    """A line with a text at each end; its last cell, the 90th, stays free."""
    return left + right.rjust(width - len(left))


def shown(case, config=None, width=90):
    page = Page(width)
    write_case(page, EvalCase.model_validate(case), "house", config)
    return ["".join(text for text, _ in line).rstrip() for line in page.lines], page


def test_a_case_is_shown_with_everything_in_it():
    lines, page = shown(FULL, EvalConfig.model_validate(CONFIG))
    assert lines == [
        "  id           everything",
        f"  created      {show_local(datetime.fromtimestamp(1_760_000_000, UTC))}",
        "  session      app  house",
        "               user  ann",
        "               id  new session per run",
        '  state        mode   "night"',
        "               rooms  3",
        '  final state  mode  "day"',
        "  rubrics      polite  Says please",
        '  owner        "ann"',
        "",
        ends("Turn 1", "exactly these calls"),
        "  user         What is this?",
        "               [image/png 34 KB]",
        "               [application/pdf at gs://bucket/a.pdf]",
        "",
        "  · look",
        "      zoom  2",
        '  ← look  {"seen": "a cat"}',
        "  intermediate helper:  let me see",
        "  response     hm",
        "               [thought, not scored]",
        "               A cat.",
        "  rubrics      short  Is short",
        "",
        ends("Turn 2", "no calls expected"),
        "  user         Thanks",
        "  response     no response expected",
        "",
        ends("Turn 3", "calls unspecified"),
        "  user         Bye",
        "  calls        No calls   o add   space change",
        "  response     no response expected",
        "",
        ends("Turn 4", "calls not checked"),
        "  user         Skipped",
        "  response     no response expected",
        "",
        ends("Turn 5", "context turn, not scored"),
        "  user         Context",
        "  response     no response expected",
        "",
        ends("Turn 6", "exactly these calls"),
        "  user         Recorded",
        "",
        "  · ring",
        "      No arguments   o add",
        '  ← ring  {"ok": 1}',
        "  intermediate agent:  rang",
        "  response     no response expected",
    ]
    assert [lines[number] for number in page.turns.values()] == [
        line for line in lines if line.startswith("Turn")
    ]


def test_a_simulated_user_is_shown_with_plan_and_persona():
    lines, _ = shown(SCENARIO)
    assert lines[-9:] == [
        "  final state  not checked",
        "",
        "Simulated user",
        "  prompt       Hi there",
        "  plan         Ask for the weather",
        "  persona      hasty  Has no time",
        "               interrupts  Cuts in",
        "               · Be short",
        "               ✗ Waits",
    ]


def test_an_empty_conversation_says_so():
    lines, _ = shown({"eval_id": "empty", "conversation": []})
    assert lines[-1] == "Conversation is empty   o  Add turn"
