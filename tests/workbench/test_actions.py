"""The registry: no two meanings of one key, and a reason for everything that cannot be done."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, FOCUS_CHAINS, Scope, actions_in, chain_of, hints
from evaltui.workbench.state import READ_ONLY
from evaltui.workbench.workbench import Workbench


def refusal(workbench, scope, action):
    return ACTIONS_BY_ID[action].refusal(workbench, scope)


@pytest.mark.parametrize("chain", FOCUS_CHAINS, ids=str)
def test_a_key_means_one_thing_in_a_focus_chain(chain):
    actions = {action.id: action for scope in chain for action in actions_in(scope)}
    keys = Counter(key for action in actions.values() for key in action.keys)
    assert {key for key, times in keys.items() if times > 1} == set()


def test_ids_are_unique_and_everything_is_explained():
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert all(action.help and action.title and action.keys and action.where for action in ACTIONS)
    assert {name.upper() for action in ACTIONS for name in (*action.ranks, *action.refusals)} <= {
        *Scope.__members__
    }


def test_a_read_only_workbench_refuses_what_acts():
    workbench = Workbench(Path("nowhere"), read_only=True)
    assert {action for action in ACTIONS if action.refusal(workbench) == READ_ONLY} == {
        action for action in ACTIONS if action.acts
    }


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
    shown = hints(Scope.CASES, partial(refusal, workbench, Scope.CASES))
    assert len(shown) <= 8
    assert [action.id for action in shown] == ["chat_from_here", "next_pane", "quit"]


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope is not Scope.MAIN])
def test_escape_leads_out_of_every_place(scope):
    places = {*chain_of(scope)}
    assert [action.id for action in ACTIONS if "escape" in action.keys and places & set(action.where)]


@pytest.mark.parametrize(
    "scope",
    [Scope.FIELD, Scope.TEXT, Scope.PROMPT, Scope.FORM, Scope.VERSIONS, Scope.LEAVING],
)
def test_ctrl_s_applies_in_every_field_and_dialog(scope):
    assert [action.id for action in actions_in(scope) if "ctrl+s" in action.keys]


def test_a_field_says_how_it_is_applied_and_never_two_ways():
    workbench = Workbench(Path("nowhere"))
    applying = {"end_field", "end_text"}
    for scope, key in ((Scope.FIELD, "enter"), (Scope.TEXT, "ctrl+j")):
        refuses = partial(refusal, workbench, scope)
        shown = [action for action in hints(scope, refuses) if action.id in applying]
        assert [action.keys for action in shown] == [(key,)]
