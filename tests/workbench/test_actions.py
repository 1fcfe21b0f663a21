"""The registry: no two meanings of one key, and a reason for everything that cannot be done."""

from collections import Counter
from pathlib import Path

import pytest

from evaltui.workbench.actions import ACTIONS, FOCUS_CHAINS, Scope, actions_in, chain_of, hints
from evaltui.workbench.workbench import Workbench


@pytest.mark.parametrize("chain", FOCUS_CHAINS, ids=str)
def test_a_key_means_one_thing_in_a_focus_chain(chain):
    actions = {action.id: action for scope in chain for action in actions_in(scope)}
    keys = Counter(key for action in actions.values() for key in action.keys)
    assert {key for key, times in keys.items() if times > 1} == set()


def test_ids_are_unique_and_everything_is_explained():
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert all(action.help and action.title and action.keys and action.where for action in ACTIONS)


def test_nothing_can_be_run_before_the_sets_are_read():
    workbench = Workbench(Path("nowhere"))
    reasons = {action.id: action.refusal(workbench) for action in ACTIONS}
    for name in ("run", "run_set", "run_all", "run_failed"):
        assert reasons[name] == "Loading eval sets…"
    assert reasons["cancel_run"] == "Nothing to cancel; q quits"
    assert reasons["step_back"] == "Nothing to clear"
    assert reasons["next_failing"] == "Nothing run yet"


def test_the_footer_has_at_most_eight_hints_that_can_be_done():
    workbench = Workbench(Path("nowhere"))
    shown = hints(workbench, Scope.CASES)
    assert len(shown) <= 8
    assert [action.id for action in shown] == ["chat_from_here", "next_pane", "quit"]


# What a key does wherever it is bound: its meaning, and the ids of all of its actions.
RULES = {
    "escape": (
        "closes the smallest open thing, never a run",
        {
            *("step_back", "leave_field", "leave_message", "leave_question", "form_leave", "leave_it"),
            *(
                "clear_filter",
                "close_details",
                "close_jump",
                "close_runs",
                "close_comparison",
                "close_sessions",
                "close_matrix",
            ),
            *("close_criteria", "leave_effect", "leave_open", "leave", "stay"),
        },
    ),
    "q": (
        "closes what lies over the screen, at last the program",
        {
            *("quit", "leave", "close_runs", "close_comparison", "close_criteria", "close_details"),
            *("close_sessions", "close_matrix"),
            *("form_leave", "leave_it", "leave_effect", "leave_open", "stay"),
        },
    ),
    "enter": (
        "opens or edits what is current, applies what is typed or chosen",
        {
            *(
                "open",
                "open_run",
                "open_recent_run",
                "open_changed",
                "open_session",
                "open_cell",
                "open_details",
                "open_agent",
            ),
            *("edit_field", "edit_criterion", "end_field", "take", "take_step", "send", "form_take"),
            *("accept_it", "decide", "save_and_leave", "keep_filter", "close_details", "go_to_case"),
        },
    ),
    "ctrl+c": ("cancels the turn or the run", {"cancel_run", "cancel_turn"}),
    "ctrl+s": (
        "applies and saves",
        {"save", "save_field", "take", "form_take", "accept_it", "decide", "save_and_leave"},
    ),
    "ctrl+j": ("ends a line or a text", {"end_text", "new_line"}),
    "ctrl+q": ("quits", {"quit", "leave"}),
    "ctrl+e": ("goes on in $EDITOR", {"external_editor", "field_in_editor", "message_in_editor"}),
    "ctrl+o": ("jumps, or stays", {"jump", "close_jump"}),
    "ctrl+r": ("does it again", {"run_again", "retry"}),
    "ctrl+t": ("saves a case", {"result_to_case", "save_as_case", "session_to_case"}),
    "tab": (
        "goes to the next",
        {"next_pane", "next_field", "form_next", "next_page", "accept_more", "switch_part"},
    ),
    "shift+tab": (
        "goes to the previous",
        {"previous_pane", "previous_field", "form_previous", "previous_page", "accept_less", "switch_part"},
    ),
    "space": (
        "folds, marks, or changes to the next state",
        {
            *(
                "toggle_fold",
                "fold_kind",
                "toggle_result",
                "mark_base",
                "toggle_listening",
                "set_matrix_base",
            ),
            *("next_kind", "form_toggle", "add_criterion"),
        },
    ),
    "f1": ("opens the guide", {"guide", "guide_page"}),
    "f2": ("types a name or value", {"rename", "rename_field", "name_run", "form_edit"}),
    "f5": ("reads again", {"reload", "reload_runs", "reload_matrix"}),
    "delete": ("deletes", {"delete_case", "delete_field", "rewind", "remove_criterion"}),
    "D": ("deletes", {"delete_case", "delete_field", "rewind", "remove_criterion"}),
    "e": (
        "edits",
        {
            *("edit_case", "edit_field", "edit_message", "show_expected"),
            *("edit_source", "edit_criterion", "form_edit"),
        },
    ),
    "o": (
        "adds one, or opens another",
        {"new_case", "add_below", "add_criterion", "open_folder", "choose_matrix"},
    ),
    "O": ("adds one above or around", {"new_set", "insert_before"}),
    "d": (
        "duplicates; of few choices, its letter; in a matrix only what differs",
        {"duplicate_case", "duplicate_field", "open_demo", "discard_and_leave", "only_differing"},
    ),
    "s": (
        "runs the set; of few choices, its letter; in a matrix sorts",
        {"run_set", "save_and_leave", "create_starter", "sort_matrix"},
    ),
    "a": ("accepts", {"accept", "accept_cases", "accept_in_case"}),
    "r": ("runs", {"run", "resume_run", "run_more"}),
    "left_square_bracket": ("goes through repeats", {"previous_repeat", "previous_cell_repeat"}),
    "right_square_bracket": ("goes through repeats", {"next_repeat", "next_cell_repeat"}),
    "t": (
        "goes to the trace and back",
        {"go_to_trace", "show_event", "back_to_result", "trace_chat"},
    ),
    "n": (
        "goes to the next difference; of sessions, lists what is new",
        {"next_difference", "next_clash", "go_to_failing", "toggle_trajectories"},
    ),
    "N": ("goes to the previous difference", {"previous_difference", "previous_clash"}),
    "m": ("opens and closes the criteria", {"criteria", "close_criteria"}),
    "H": ("runs; in a choice of two sides, far left", {"runs", "close_runs", "much_lower", "keep_all_mine"}),
    "L": ("far right", {"much_higher", "take_all_theirs"}),
    "V": ("opens and closes the matrix", {"matrix", "close_matrix"}),
    "T": ("opens and closes the sessions", {"sessions", "close_sessions"}),
    "E": ("opens the source in an editor; of a matrix, exports", {"open_source", "export_matrix"}),
    "y": ("copies", {"copy", "copy_comparison"}),
    "equals_sign": ("compares", {"compare_runs", "compare_cells", "swap_runs"}),
}
_MOVES = {
    "up": {"line_up", "form_up", "previous_answer", "previous_choice", "earlier_message"},
    "down": {"line_down", "form_down", "next_answer", "next_choice", "later_message", "keep_filter"},
    "left": {
        "fold",
        "previous_page",
        "previous_tab",
        "previous_link",
        "previous_variant",
        "form_left",
        "lower",
        "accept_less",
        "keep_mine",
    },
    "right": {
        "unfold",
        "next_page",
        "next_tab",
        "next_link",
        "next_variant",
        "form_right",
        "higher",
        "accept_more",
        "take_theirs",
    },
    "pageup": {"page_up", "answers_up", "earlier_rows"},
    "pagedown": {"page_down", "answers_down", "later_rows"},
    "shift+up": {"move_case_up", "move_field_up"},
    "shift+down": {"move_case_down", "move_field_down"},
    "shift+left": {"much_lower", "keep_all_mine"},
    "shift+right": {"much_higher", "take_all_theirs"},
}
_LETTERS = {"k": "up", "j": "down", "h": "left", "l": "right", "K": "shift+up", "J": "shift+down"}
RULES |= {key: ("moves", ids) for key, ids in _MOVES.items()}
RULES |= {letter: ("moves", _MOVES[key]) for letter, key in _LETTERS.items()}


@pytest.mark.parametrize("key", sorted({key for action in ACTIONS for key in action.keys}))
def test_a_key_has_one_rule_everywhere(key):
    ids = {action.id for action in ACTIONS if key in action.keys}
    meaning, allowed = RULES.get(key, ("", set()))
    assert len(ids) == 1 or meaning, f"{key} means several things: {sorted(ids)}"
    assert not meaning or ids <= allowed, f"{key} {meaning}: {sorted(ids - allowed)}"


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope not in (Scope.MAIN, Scope.HELP)])
def test_escape_leads_out_of_every_place(scope):
    places = {*chain_of(scope)}
    assert [action.id for action in ACTIONS if "escape" in action.keys and places & set(action.where)]


@pytest.mark.parametrize(
    "scope",
    [Scope.FIELD, Scope.TEXT, Scope.PROMPT, Scope.FORM, Scope.ACCEPT, Scope.VERSIONS, Scope.LEAVING],
)
def test_ctrl_s_applies_in_every_field_and_dialog(scope):
    assert [action.id for action in actions_in(scope) if "ctrl+s" in action.keys]


def test_a_field_says_how_it_is_applied_and_never_two_ways():
    workbench = Workbench(Path("nowhere"))
    applying = {"end_field", "end_text"}
    for scope, key in ((Scope.FIELD, "enter"), (Scope.TEXT, "ctrl+j")):
        shown = [action for action in hints(workbench, scope) if action.id in applying]
        assert [action.keys for action in shown] == [(key,)]
