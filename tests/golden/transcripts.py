"""Transcripts of terminal sessions: scenario and expectation in one file, in the style of cram.

    Two cases of one set, of which one fails.

      $ evaltui run shop --report csv=r.csv
      …
      [exit 1]

    The same as a table.

      $ cat r.csv
      …

The first line says what the file shows, perhaps with `(thorough)` or `(needs MODULE)` behind it. Further
lines at the margin are prose. Indented by two, a line that begins with `$ ` is a command, and what follows is
its output: standard output, standard error with `2> ` before each line, and `[exit N]` unless that is 0.
Trailing spaces are cut; an output line that looks like a command is written `\\$ …`.

Each transcript runs in an empty folder with copies of those agents of `tests/golden/agents` and
`sample_agents` that its commands name. What differs from run to run is made equal by `normalised_output`.
`python -m tests.golden [NAME...]` runs transcripts and writes their outputs anew; commands and prose stay.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("transcripts")
ROOT = Path(__file__).parents[2]
_AGENTS = (Path(__file__).with_name("agents"), ROOT / "sample_agents")
_INDENT = "  "
_COMMAND = f"{_INDENT}$ "
_LOOKS_LIKE_A_COMMAND = re.compile(r"^(\\*\$ )", re.MULTILINE)


@dataclass(frozen=True)
class Transcript:
    """A parsed file. `lines` are its commands, each with its `$ `, and its prose, without the outputs."""

    name: str
    lines: tuple[str, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(line.removeprefix(_COMMAND) for line in self.lines if line.startswith(_COMMAND))

    @property
    def thorough(self) -> bool:
        return "(thorough)" in self.lines[0]

    @property
    def needs(self) -> str:
        """The module that it cannot be run without; "" for none."""
        needed = re.search(r"\(needs ([\w.]+)\)", self.lines[0])
        return needed[1] if needed else ""

    def copy_agents(self, folder: Path) -> None:
        """Copy the agents that the commands name."""
        words = set(re.findall(r"\w+", " ".join(self.commands)))
        for agent in (agent for place in _AGENTS for agent in place.iterdir()):
            if agent.name in words and agent.is_dir():
                ignored = shutil.ignore_patterns(".evaltui", ".adk", "__pycache__")
                shutil.copytree(agent, folder / agent.name, ignore=ignored)

    def with_outputs(self, run: Callable[[str], str]) -> str:
        """The text of the file with the outputs that `run` returns for the commands now."""
        return "\n".join(_spaced(self._sections(run))) + "\n"

    def _sections(self, run: Callable[[str], str]) -> Iterator[str]:
        for line in self.lines:
            yield line
            if line.startswith(_COMMAND):
                output = _LOOKS_LIKE_A_COMMAND.sub(r"\\\1", run(line.removeprefix(_COMMAND)))
                yield from (f"{_INDENT}{text}".rstrip() for text in output.splitlines())


def read_transcripts() -> list[Transcript]:
    return [_parsed(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.txt"))]


def _parsed(name: str, text: str) -> Transcript:
    lines = (line for line in text.splitlines() if line.startswith(_COMMAND) or line[:1].strip())
    return Transcript(name, tuple(lines))


def _spaced(lines: Iterator[str]) -> Iterator[str]:
    """Blank lines between prose and session."""
    was_prose = None
    for line in lines:
        prose = bool(line[:1].strip())
        if was_prose is not None and prose != was_prose:
            yield ""
        yield line
        was_prose = prose
