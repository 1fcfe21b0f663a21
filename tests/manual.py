"""The parts of the README and of the guide that come from the code.

`python -m tests.manual [PAGE...]` writes them, and the outputs of commands. A table stands between
`<!-- NAME ARGUMENTS -->` and `<!-- /NAME -->`.
A key in a sentence is followed by the id of its action: `r` and `<!-- run -->`, or by `<!-- typed -->`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import evaltui
from evaltui.commands.command_table import COMMANDS
from evaltui.commands.exit_codes import CODES, codes_in_words
from evaltui.commands.parser import parser_of
from evaltui.core.metrics.declaration import Option
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.errors import MEANINGS
from evaltui.core.model.eval_config import MANAGED
from evaltui.exchange.promptfoo_assertions import ASSERTIONS, REASONS
from evaltui.exchange.row_mapping import FIELDS, SHAPES
from evaltui.project import guide
from evaltui.project.lint import lint_rules, rules_with_mends
from evaltui.project.run_settings import SETTINGS
from evaltui.pytest_plugin import pytest_addoption
from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, Scope, actions_in
from evaltui.workbench.cases.case_list import LANGUAGE
from evaltui.workbench.keymap import key_name
from tests.agents.conformance import kinds_of_agents

ROOT = Path(evaltui.__file__).parents[1]
README = ROOT / "README.md"
REWRITE = "EVALTUI_REWRITE_MANUAL"
PAGES = (README, *(guide.FOLDER / f"{name}.md" for name in guide.TOPICS))

_TABLE = re.compile(r"((?<!`)<!-- (\w+)(?: ([^>]+))? -->\n).*?(<!-- /\2 -->)", re.DOTALL)
_KEY = re.compile(r"`[^`\n]+`<!-- (\w+) -->")
# In Markdown bold, unless it is code.
_DUNDER = re.compile(r"__\w+__\.\w+")
_NO_ACTION = "typed"


def up_to_date(text: str) -> str:
    """A page with its tables and keys as the code has them now. Raises ValueError for an unknown name."""
    text = _TABLE.sub(lambda found: found[1] + _table(found[2], found[3]) + found[4], text)
    return _KEY.sub(lambda found: found[0] if found[1] == _NO_ACTION else _key(found[1]), text)


def _table(name: str, argument: str | None) -> str:
    if name not in _TABLES:
        raise ValueError(f"no table {name!r}: {', '.join(_TABLES)}")
    return "".join(f"{line}\n" for line in _TABLES[name](argument or ""))


def _key(action: str) -> str:
    if action not in ACTIONS_BY_ID:
        raise ValueError(f"no action {action!r}")
    return f"`{key_name(ACTIONS_BY_ID[action].keys[0])}`<!-- {action} -->"


def _keys(place: str) -> Iterator[str]:
    """The actions of a place; those of every list are listed once, under `in every list`."""
    scope = Scope(place) if place != "in every list" else None
    yield "| keys | action | in `keys.toml` |"
    yield "|---|---|---|"
    for action in ACTIONS if scope is None else actions_in(scope):
        if (scope is None) is action.is_move:
            keys = " ".join(f"`{key_name(key)}`" for key in action.keys)
            yield f"| {keys} | {action.help} | `{action.id}` |"


def _filter(_: str) -> Iterator[str]:
    yield "| filter | keeps cases with |"
    yield "|---|---|"
    for form, meaning in LANGUAGE:
        yield f"| `{form}` | {_in_cell(meaning)} |"


def _exit_codes(_: str) -> Iterator[str]:
    yield "| code | `evaltui run` |"
    yield "|---|---|"
    for code, meaning in CODES.items():
        as_code = re.sub(r"(--[a-z-]+)", r"`\1`", meaning)
        yield f"| {code} | {_in_cell(as_code)} |"


def _error_kinds(_: str) -> Iterator[str]:
    yield "| kind | |"
    yield "|---|---|"
    for kind, meaning in MEANINGS.items():
        yield f"| `{kind}` | {meaning} |"


def _lint_rules(_: str) -> Iterator[str]:
    yield "| rule | severity | `--fix` | meaning |"
    yield "|---|---|---|---|"
    mended = rules_with_mends()
    for rule in lint_rules():
        severity = "error" if rule.blocks else "warning"
        yield f"| `{rule.id}` | {severity} | {'yes' if rule.id in mended else ''} | {rule.meaning} |"


def _commands(_: str) -> Iterator[str]:
    yield "| command | | exit codes |"
    yield "|---|---|---|"
    for name, command in COMMANDS.items():
        arguments = [_in_cell(_form(option)) for option in shown_options(name) if not option.option_strings]
        line = " ".join([*dict.fromkeys(("evaltui", name)), *arguments])
        codes = "" if command.exit_codes == codes_in_words() else command.exit_codes
        yield f"| `{line}` | {command.summary} | {_in_cell(codes) or '[below](#exit-codes-of-evaltui-run)'} |"


def shown_options(command: str) -> list[argparse.Action]:
    """The arguments and options of a command that its help shows."""
    hidden = ("help", argparse.SUPPRESS)
    return [one for one in parser_of(command)._actions if one.dest not in hidden and one.help not in hidden]


def _options(_: str) -> Iterator[str]:
    """A table for each subject: every option once, with its commands."""
    commands: dict[str, dict[tuple[str, str], list[str]]] = {}
    # A command with few options has no groups; its options are in those of others.
    subjects = {
        option.option_strings[0]: group.title or ""
        for name in COMMANDS
        for group in parser_of(name)._action_groups
        for option in group._group_actions
        if option.option_strings and group.title not in ("options", "positional arguments")
    }
    for name in COMMANDS:
        for option in shown_options(name):
            if option.option_strings:
                group = subjects.get(option.option_strings[0], "Options")
                row = (_form(option), option.help or "")
                commands.setdefault(group, {}).setdefault(row, []).append(name.removeprefix("evaltui") or "")
    for group, rows in sorted(commands.items(), key=lambda table: table[0] == "Options"):
        yield from ("", f"### {'Other options' if group == 'Options' else group}", "")
        yield "| option | meaning | commands |"
        yield "|---|---|---|"
        for (form, text), names in rows.items():
            meaning = _DUNDER.sub(r"`\g<0>`", _in_cell(text))
            yield f"| `{_in_cell(form)}` | {meaning} | {', '.join(name or '`evaltui`' for name in names)} |"
    yield ""


def _form(option: argparse.Action) -> str:
    """`--record auto|replay|record|off`, `[AGENT_DIR]`, `PATH...`"""
    value = "|".join(map(str, option.choices)) if option.choices else option.metavar
    if isinstance(value, tuple):
        value = " ".join(value)
    if option.option_strings:
        return " ".join([", ".join(option.option_strings), *([value] if value else [])])
    return {"?": f"[{value}]", "*": f"[{value}...]", "+": f"{value}..."}.get(str(option.nargs), str(value))


def _metrics(kind: str) -> Iterator[str]:
    """Those of a judge, or those that are computed."""
    yield "| metric | range | meaning | needs |"
    yield "|---|---|---|---|"
    for info in METRICS.values():
        if (info.judged is not None) is (kind == "judged"):
            needs = ", ".join(need for need in info.needs if need != "a judge model")
            low, high = info.interval or (0, None)
            span = f"{low:g} and up" if high is None else f"{low:g} to {high:g}"
            yield f"| `{info.name}` | {span} | {_in_cell(info.meaning)} | {needs} |"


def _criteria(_: str) -> Iterator[str]:
    """The options of criteria, each with its metrics."""
    users: dict[Option, list[str]] = {}
    for name in METRICS:
        for option in METRICS[name].options:
            users.setdefault(replace(option, default=json.dumps(option.default)), []).append(name)
    judged = [name for name, info in METRICS.items() if info.judged]
    yield "| option | default | meaning | metrics |"
    yield "|---|---|---|---|"
    for option, names in users.items():
        default = "" if option.default == "null" else f"`{option.default}`"
        where = "every judge" if names == judged else ", ".join(f"`{name}`" for name in names)
        yield f"| `{'.'.join(map(str, option.path))}` | {default} | {option.meaning} | {where} |"


def _fields(_: str) -> Iterator[str]:
    """The fields of a case that a row may have."""
    yield "| field | of the case |"
    yield "|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in FIELDS.items())


def _shapes(_: str) -> Iterator[str]:
    yield "| rows of | have |"
    yield "|---|---|"
    for shape in SHAPES:
        keys = ", ".join(f"`{key}`" for key in sorted(shape.keys))
        yield f"| {shape.name} | {keys or 'any members, such as `prompt` and `expected`'} |"


def _assertions(_: str) -> Iterator[str]:
    yield "| assertion | becomes |"
    yield "|---|---|"
    by_counterpart: dict[str, list[str]] = {}
    for name, (_handler, counterpart) in ASSERTIONS.items():
        by_counterpart.setdefault(counterpart, []).append(f"`{name}`")
    for name, reason in REASONS.items():
        by_counterpart.setdefault(f"not taken: {reason}", []).append(f"`{name}`")
    yield from (f"| {', '.join(names)} | {counterpart} |" for counterpart, names in by_counterpart.items())
    yield "| others, and `not-…` | not taken |"


def _pytest(_: str) -> Iterator[str]:
    """The options that the plugin adds to pytest."""
    options = _Options()
    pytest_addoption(options)
    yield "| option of pytest | |"
    yield "|---|---|"
    for form, text in options.added:
        yield f"| `{_in_cell(form)}` | {_in_cell(text)} |"


class _Options:
    """Takes options as pytest's parser and its groups do."""

    def __init__(self) -> None:
        self.added: list[tuple[str, str]] = []

    def getgroup(self, name: str, description: str) -> _Options:
        return self

    def addoption(self, name: str, help: str, metavar: str = "", **_: object) -> None:
        self.added.append((f"{name} {metavar}".strip(), help))

    def addini(self, *_: object, **__: object) -> None:
        """Each is an option, too."""


def _settings(_: str) -> Iterator[str]:
    """The keys of `[tool.evaltui]`."""
    yield "| key | value | meaning | default |"
    yield "|---|---|---|---|"
    for name, one in SETTINGS.items():
        yield f"| `{name}` | {one.kind.description} | {one.meaning} | {one.default} |"


def _managed_metrics(_: str) -> Iterator[str]:
    """The metrics of Google's evaluation service, and those of evaltui."""
    yield "| in `metrics_to_run` | metric | threshold | how close, or what to use instead |"
    yield "|---|---|---|---|"
    for one in sorted(MANAGED, key=lambda one: not one.metric):
        metric = f"`{one.metric}`" if one.metric else "none"
        threshold = "" if one.threshold is None else f"{one.threshold:g}"
        yield f"| `{one.name}` | {metric} | {threshold} | {_in_cell(one.likeness)} |"


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


_TABLES: Mapping[str, Callable[[str], Iterator[str]]] = {
    "assertions": _assertions,
    "fields": _fields,
    "shapes": _shapes,
    "agents": kinds_of_agents.lines,
    "keys": _keys,
    "exit_codes": _exit_codes,
    "error_kinds": _error_kinds,
    "lint_rules": _lint_rules,
    "filter": _filter,
    "commands": _commands,
    "options": _options,
    "managed_metrics": _managed_metrics,
    "metrics": _metrics,
    "criteria": _criteria,
    "settings": _settings,
    "pytest": _pytest,
}


def main(names: list[str]) -> int:
    """Writes the pages, all or those with these names."""
    pages = [page for page in PAGES if not names or page.stem in names]
    for page in pages:
        page.write_text(up_to_date(page.read_text(encoding="utf-8")), encoding="utf-8")
    tests = ROOT / "tests" / "test_manual_commands.py"
    test = f"{tests}::test_the_commands_of_a_page_do_as_it_says"
    with_commands = [page for page in pages if "console\n$ " in page.read_text(encoding="utf-8")]
    if not with_commands:
        return 0
    words = [f"{test}[{page.stem}]" for page in with_commands] if names else [test]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--no-header", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, env={**os.environ, REWRITE: "1"}, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
