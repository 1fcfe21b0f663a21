"""The commands of README and guide, and their outputs in the pages.

The commands of a page run one after another in one folder with the sample agents. A command exits with 0, or
as its comment says: `# exit 1`. Commands that open a screen or never end are parsed.

| in a page | |
|---|---|
| `<!-- setup COMMAND -->` | runs before what follows; readers do not see it |
| `<!-- output -->` above a `console` block | below the last command stands its output, all of it |
| `<!-- output "TEXT" 5 "OTHER" 2 -->` | only 5 lines from the first with TEXT, then 2 from one with OTHER |

`python -m tests.manual` writes the outputs; the tests compare them, without times, dates and ids.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evaltui.cli import main
from evaltui.commands.command_table import COMMAND_NAMES
from evaltui.commands.parser import parser_of
from tests.golden.normalised_output import Normaliser

LEFT_OUT = "..."

_STEP = re.compile(
    r"^<!-- setup (?P<setup>.+?)\s-->$"
    r"|(?:^<!-- output(?P<output>[^>\n]*) -->\n)?^```(?P<kind>console|sh|yaml)\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PART = re.compile(r'"([^"]+)" (\d+)')
_EVALTUI = re.compile(r"(?:(?P<source>.+) \| )?evaltui(?: (?P<words>.*?))?(?: > (?P<file>\S+))?")
_IN_CI = "- run: "
_EXIT = re.compile(r"#.*\bexit (\d)")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?Z?")


@dataclass
class Command:
    """A command line of a page."""

    line: str
    shown: list[str] = field(default_factory=list)
    """The lines of output below it."""
    in_ci: bool = False
    """True for a step of a CI job; the agent it names is the reader's."""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)

    @property
    def exit_code(self) -> int:
        found = _EXIT.search(self.line)
        return int(found[1]) if found else 0

    @property
    def only_parsed(self) -> bool:
        endless = self.words[1:2] == [] or self.words[1] not in COMMAND_NAMES
        endless = endless or self.words[1] in ("serve", "demo", "listen") or "--watch" in self.words
        return self.in_ci or (self.words[0] == "evaltui" and endless)


@dataclass
class Step:
    """A block of a page with its commands, or a hidden command."""

    commands: list[Command]
    end: int
    """Where its text ends in the page."""
    output: str | None = None
    """Parts of the output to show; "" for all of it, None for none."""
    body: tuple[int, int] = (0, 0)
    """The block inside its fence, as positions in the page."""


def steps_of(text: str) -> Iterator[Step]:
    """The blocks with commands and the hidden commands of a page, in order."""
    for match in _STEP.finditer(text):
        if match["setup"]:
            yield Step([Command(match["setup"])], match.end())
            continue
        commands: list[Command] = []
        for line in match["block"].splitlines():
            if match["kind"] == "yaml":
                assert line.startswith(_IN_CI), line
                commands.append(Command(line.removeprefix(_IN_CI), in_ci=True))
            elif match["kind"] == "sh":
                commands.append(Command(line))
            elif line.startswith("$ "):
                commands.append(Command(line.removeprefix("$ ")))
            else:
                commands[-1].shown.append(line)
        yield Step(commands, match.end(), match["output"], match.span("block"))


def parse(words: list[str]) -> object:
    """The options of a command line without its `evaltui`."""
    if words and words[0] in COMMAND_NAMES:
        return parser_of(words[0]).parse_intermixed_args(words[1:])
    return parser_of("evaltui").parse_intermixed_args(words)


def run(line: str) -> tuple[int, str]:
    """Runs a command; evaltui in this process, other programs in a shell.

    Returns the exit code and what a terminal shows, without what goes to a file.
    """
    if not (match := _EVALTUI.fullmatch(line)):
        # That of the environment that runs this test.
        line = f"{sys.executable} -m {line}" if line.startswith("pytest ") else line
        done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout
    source, file = match["source"], match["file"]
    words = [name for word in shlex.split(match["words"], comments=True) for name in _expanded(word)]
    with pytest.MonkeyPatch.context() as patch:
        if source:
            piped = subprocess.run(source, shell=True, capture_output=True, check=True).stdout
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        terminal = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) if file else terminal
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(terminal):
            try:
                main(words)
            except SystemExit as left:
                code = left.code
    if file:
        Path(file).write_bytes(out.buffer.getvalue())
    return int(code or 0), terminal.buffer.getvalue().decode()


def _expanded(word: str) -> list[str]:
    """The files that a word with `/*` names, or the word, as in a shell."""
    return sorted(map(str, Path().glob(word))) if "/*" in word else [word]


def shown_lines(output: str, parts: str) -> list[str]:
    """The lines of an output that a page shows. Raises ValueError for a text that is not in it."""
    lines = output.rstrip().splitlines()
    if not parts.strip():
        return lines
    shown: list[str] = []
    end = 0
    for text, count in _PART.findall(parts):
        start = next((number for number in range(end, len(lines)) if text in lines[number]), None)
        if start is None:
            raise ValueError(f"no line with {text!r} in the output:\n{output}")
        if start > end:
            shown.append(LEFT_OUT)
        end = min(start + int(count), len(lines))
        shown += lines[start:end]
    return [*shown, LEFT_OUT] if end < len(lines) else shown


class Unlike(Normaliser):
    """Makes the outputs of two runs alike, also where widths of columns follow from times."""

    def __call__(self, text: str) -> str:
        text = super().__call__(_MOMENT.sub("TIME", text))
        return re.sub(r"─+", "─", re.sub(r" {2,}", "  ", text))


def with_outputs(text: str, folder: Path, checkout: Path, skips: tuple[str, ...] = ()) -> str:
    """The text of a page with the outputs of its commands, which run in the current folder.

    An output that differs by times, dates and ids alone stays as it is.
    """
    result, end = "", 0
    for step in steps_of(text):
        out = ""
        for command in step.commands:
            if command.line.startswith(skips) if skips else False:
                continue
            if command.only_parsed:
                options = parse(command.words[1:])
                agent = getattr(options, "agent_dir", None)
                assert command.in_ci or not isinstance(agent, Path) or agent.exists(), command.line
                continue
            if "needs google-adk" in command.line:
                pytest.importorskip("google.adk")
            code, out = run(command.line)
            assert code == command.exit_code, f"{command.line} exits with {code}:\n{out}"
        if step.output is None:
            stray = [line for command in step.commands for line in command.shown]
            assert not stray, f"write <!-- output --> above the block with {stray[0]!r}"
            continue
        old = "\n".join(step.commands[-1].shown)
        new = "\n".join(shown_lines(out, step.output))
        if Unlike(folder, checkout)(old) != Unlike(folder, checkout)(new):
            head = "".join(f"$ {command.line}\n" for command in step.commands)
            result += text[end : step.body[0]] + head + new + "\n"
            end = step.body[1]
    return result + text[end:]
