"""Actions of the registry go where Textual sends them, and private names of Textual stay in one file."""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from pilots import screen_text, until
from textual.binding import Binding
from textual.driver import Driver
from textual.message_pump import MessagePump

import evaltui.tui
from evaltui.tui.action_screen import ActionApp, ActionScreen, bindings
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.case.view import CaseView
from evaltui.tui.widgets.lines import LineView
from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, Scope
from evaltui.workbench.workbench import Workbench

ECHO = "def root_agent(message, session):\n    return message\n"
PRIVATE = {"evaltui.tui.textual_private"}


def modules():
    for found in pkgutil.walk_packages(evaltui.tui.__path__, "evaltui.tui."):
        yield importlib.import_module(found.name)


def own_classes():
    for module in modules():
        for one in vars(module).values():
            if (
                isinstance(one, type)
                and issubclass(one, MessagePump | Driver)
                and one.__module__ == module.__name__
            ):
                yield one


@cache
def private_names(module):
    """The private attributes and methods that a module of Textual gives its objects."""
    source = inspect.getsource(sys.modules[module])
    names = re.findall(r"self\.(_[a-z]\w*)|def (_[a-z]\w*)|^    (_[a-z]\w*)\b", source, re.MULTILINE)
    return {name for found in names for name in found if name}


def names_of(cls):
    """The private names that the bodies of a class use of itself, or define."""
    for node in ast.walk(ast.parse(inspect.getsource(cls))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def test_no_class_uses_or_replaces_a_private_name_of_textual():
    found = set()
    for cls in own_classes():
        if cls.__module__ not in PRIVATE:
            of_textual = {one.__module__ for one in cls.__mro__ if one.__module__.startswith("textual.")}
            private = set().union(*map(private_names, of_textual))
            taken = {name for name in names_of(cls) if name in private and not name.startswith("__")}
            found |= {f"{cls.__name__}.{name}" for name in taken}
    assert not found


def test_private_modules_of_textual_are_imported_in_two_files_alone():
    imports = re.compile(r"^\s*(?:from|import) (textual(?:\.\w+)*\._\w+)", re.MULTILINE)
    found = {
        path.name
        for path in Path(evaltui.tui.__file__).parent.rglob("*.py")
        if imports.search(path.read_text("utf-8"))
    }
    assert found == {f"{module.rpartition('.')[2]}.py" for module in PRIVATE}


class Lines(LineView, can_focus=True, inherit_bindings=False):
    def action_step_line(self, step):
        self.app.done.append("line")


class Refusing(ActionScreen[None]):
    BINDINGS = bindings(Scope.DETAILS)

    def compose(self):
        yield Lines(id="lines")

    def refusal(self, action_id):
        return "not now" if action_id == "line_up" else None

    def refuse(self, action_id):
        self.app.done.append(self.refusal(action_id))

    def action_close_details(self):
        self.app.done.append("screen")


class Routed(ActionApp[None]):
    def __init__(self):
        super().__init__()
        self.done = []

    def get_default_screen(self):
        return Refusing()

    def action_open_source(self):
        self.done.append("app")


async def test_an_action_is_of_the_focused_widget_then_its_screen_then_the_app():
    app = Routed()
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.screen.focused is not None)
        await pilot.press("j", "q", "E", "k", "g")
        assert app.done == ["line", "screen", "app", "not now"]
        assert not app.screen.check_action("line_up", ())
        assert app.screen.check_action("line_down", ())


async def test_every_action_of_the_main_screen_and_its_panes_has_a_method(write_agent):
    app = WorkbenchApp(Workbench(write_agent(ECHO, name="parrot").parent))
    scopes = {Scope.CASES, Scope.CASE, Scope.RESULT, Scope.TRACE, Scope.CONSOLE, Scope.CHAT}
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: len(app.screen.query("#case, #result, #chat, #trace, #console")) == 5)
        for action in ACTIONS:
            for scope in scopes & set(action.where) or {Scope.MAIN} & set(action.where):
                node = app.screen if scope is Scope.MAIN else app.screen.query_one(f"#{scope.name.lower()}")
                has = [one for one in node.ancestors_with_self if hasattr(one, action.method)]
                assert has, f"{action.id} {scope}"


async def test_why_a_key_does_nothing_is_shown_and_the_key_is_used_up(write_agent):
    app = WorkbenchApp(Workbench(write_agent(ECHO, name="parrot").parent))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.workbench.sets.workspace is not None)
        await pilot.press("u")
        await until(pilot, lambda: "Nothing to undo" in screen_text(app))
        assert await app.run_action("undo", app.screen)


@pytest.mark.parametrize("key", ["f4", "ctrl+c"])
async def test_keys_of_the_case_wait_until_its_field_is_left(write_agent, key):
    folder = write_agent(ECHO, name="parrot").parent
    (folder / "a.evalset.json").write_text(
        '{"eval_set_id": "a", "eval_cases": [{"eval_id": "hi", "conversation":'
        ' [{"user_content": {"parts": [{"text": "hi"}]}}]}]}',
        encoding="utf-8",
    )
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.workbench.sets.listed)
        await pilot.press("2", "enter")
        await until(pilot, lambda: app.focused.id == "case-line")
        await pilot.press(key)
        if key == "f4":
            await until(pilot, lambda: "close the field first" in screen_text(app))
        assert app.focused.id == "case-line"


def test_no_key_is_bound_twice_in_one_widget():
    twice = [
        f"{cls.__name__}: {key} is {taken[key]} and {one.action}"
        for cls in own_classes()
        for taken in [{}]
        for one in vars(cls).get("BINDINGS", ())
        if isinstance(one, Binding)
        for key in one.key.split(",")
        if taken.setdefault(key, one.action) != one.action
    ]
    assert not twice


def keys_shown():
    """The modules that draw lines of keys, with the ids of their actions."""
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Hint":
                yield module, ast.literal_eval(node.args[0])


def test_every_key_that_a_dialog_shows_does_something_there():
    shown = set(keys_shown())
    assert len(shown) > 20
    classes = {
        module: [one for one in own_classes() if one.__module__ == module.__name__] for module, _ in shown
    }
    dead = [
        f"{module.__name__}: {action}"
        for module, action in shown
        if not any(hasattr(cls, ACTIONS_BY_ID[action].method) for cls in classes[module])
    ]
    assert not dead


@pytest.mark.parametrize("scope", [Scope.FIELD, Scope.TEXT])
def test_every_key_in_the_footer_of_a_field_does_something(scope):
    in_footer = [action.id for action in ACTIONS if scope in action.where and action.rank is not None]
    assert in_footer
    assert not [one for one in in_footer if not hasattr(CaseView, ACTIONS_BY_ID[one].method)]
