"""The user's own keys: what is understood, and what is said of the rest."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, FOCUS_CHAINS, actions_in
from evaltui.workbench.keymap import read_keymap


@pytest.fixture
def keymap(tmp_path):
    def read(text):
        path = tmp_path / "keys.toml"
        path.write_text(text, encoding="utf-8")
        return read_keymap(path)

    return read


def test_without_a_file_nothing_is_changed_and_nothing_is_wrong(tmp_path):
    keymap = read_keymap(tmp_path / "keys.toml")
    assert (dict(keymap.keys), keymap.problems) == ({}, ())


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("ctrl+g", "ctrl+g"),
        ("CTRL+G", "ctrl+g"),
        ("shift+m", "M"),
        ("F8", "f8"),
        ("esc", "escape"),
        (";", "semicolon"),
        ("+", "plus"),
        ("-", "minus"),
        ("@", "at"),
        ("ctrl+/", "ctrl+slash"),
        ("shift+ctrl+f5", "ctrl+shift+f5"),
        ("semicolon", "semicolon"),
        ("full_stop", "full_stop"),
        ("PgDn", "pagedown"),
    ],
)
def test_keys_are_written_as_people_write_them(keymap, given, key):
    chosen = keymap(f"[keys]\ncopy = '{given}'\n")
    assert chosen.problems == () or "is set for both" in chosen.problems[0]
    if not chosen.problems:
        assert chosen.keys == {"copy": (key,)}


def test_several_keys_for_one_action(keymap):
    assert keymap("[keys]\nrun = ['f7', 'f9', 'f7']\n").keys == {"run": ("f7", "f9")}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("rnu = 'f7'", "unknown action 'rnu'. Did you mean run?"),
        ("run = 5", "run must be a key or a list of keys, is the number 5"),
        ("run = []", "run must be a key or a list of keys, is a list"),
        ("run = 'ctlr+m'", "run: unknown key 'ctlr+m'; an example is 'ctrl+r'"),
        ("run = 'pageupp'", "run: unknown key 'pageupp'. Did you mean pageup?"),
        ("run = ''", "run: unknown key ''; an example is 'ctrl+r'"),
        ("run = 's'", "s is set for both run and run_set; both keep their default keys"),
    ],
)
def test_what_is_wrong_is_said_and_the_rest_is_kept(keymap, line, problem):
    read = keymap(f"[keys]\n{line}\ncopy = 'f7'\n")
    assert read.problems == (f"keys.toml:2: {problem}",)
    assert read.keys == {"copy": ("f7",)}


def test_two_actions_may_change_places(keymap):
    read = keymap("[keys]\nrun = 's'\nrun_set = 'r'\n")
    assert (read.keys, read.problems) == ({"run": ("s",), "run_set": ("r",)}, ())


def test_a_key_of_another_place_is_no_clash(keymap):
    assert keymap("[keys]\nform_toggle = 'r'\n").problems == ()


@pytest.mark.parametrize("text", ["[keys", "keys = 3", "[keyz]\nrun = 'f7'\n", "\ufeff[keys]"])
def test_a_file_that_is_no_keymap_is_a_problem(keymap, text):
    read = keymap(text)
    assert read.keys == {}
    assert len(read.problems) == 1


words = st.sampled_from([*ACTIONS_BY_ID, "rnu", "x"])
keys = st.sampled_from([key for action in ACTIONS for key in action.keys]) | st.text("ab+ ?\"'", max_size=4)


@given(st.dictionaries(words, st.lists(keys, max_size=2) | keys, max_size=6))
def test_whatever_is_chosen_no_key_means_two_things(tmp_path_factory, chosen):
    import json

    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    path.write_text("[keys]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in chosen.items()))
    keymap = read_keymap(path)
    for chain in FOCUS_CHAINS:
        actions = {action.id: action for scope in chain for action in actions_in(scope)}
        taken = [key for action in actions.values() for key in keymap.keys.get(action.id, action.keys)]
        assert len(taken) == len(set(taken))


def test_two_actions_whose_own_keys_clash_do_not_hold_up_a_keymap(keymap, monkeypatch):
    first, second = list(actions_in(FOCUS_CHAINS[0][0]))[:2]
    twin = replace(second, key_names=first.key_names)
    monkeypatch.setattr("evaltui.workbench.keymap.actions_in", lambda _: [first, twin])
    assert keymap("[keys]\nrun = 'f9'").keys == {"run": ("f9",)}
