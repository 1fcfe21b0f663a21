"""The shell of the transcripts: few commands, run in this process where that shows the same.

| command | does |
|---|---|
| `evaltui …` | the command line, in this process; with ` &` at the end a process in the background |
| `pytest …` | pytest, in this process, without its cache and the plugins of other packages |
| `cat FILE…` | prints texts; of an HTML page its text; `(no newline at the end)` where that is so |
| `json FILE [KEY…]` | prints JSON, or what is at these keys, with as much on a line as fits |
| `digest FILE…` | prints number of lines and SHA-256 of the bytes |
| `ls FOLDER` | lists the files below a folder |
| `echo TEXT` | prints the text, in which `\\n` is a new line |
| `edit FILE OLD NEW` | replaces OLD, which the file has once, by NEW |
| `rm PATH…` | removes files, and folders with all that is in them |
| `gemini FILE` | starts a Gemini server that answers with the items of a JSON list: texts, statuses, calls |
| `wait TEXT [FILE]` | waits until TEXT is in FILE, else in the output of the background process |
| `interrupt`, `kill` | SIGINT or SIGKILL for the background process, whose output and exit code follow |

Before a command may stand `NAME=VALUE`; `< FILE`, `> FILE` and `>> FILE` follow it. `*` stands for any
letters of a file's name, `$PORT` is a free port.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gemini_server import Answer, GeminiServer, calls, fails, says
from html_text import text_of_html
from normalised_output import without_durations
from waiting import wait_until

from evaltui.cli import main

with suppress(ImportError):
    # It takes the place of what finds packages, and pytester takes it away again after a test that loads it.
    import distributed  # noqa: F401

_WIDTH = 140
# Characters of the path of the session: some outputs are wrapped or cut, on all machines alike.
_LENGTH = 100
_LEFT_OUT = ("asyncio", "xdist", "hypothesispytest", "timeout", "anyio", "pytest_cov", "cacheprovider")


@dataclass(frozen=True)
class Result:
    out: str = ""
    err: str = ""
    code: int = 0

    def text(self) -> str:
        """The output in the form of a transcript."""
        end = "" if self.out.endswith("\n") or not self.out else "\n"
        complaints = "".join(f"2> {line}\n" for line in self.err.splitlines())
        return f"{self.out}{end}{complaints}" + (f"[exit {self.code}]\n" if self.code else "")


class Shell:
    """A session in a folder, which is the working folder of this process."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = pytester.path / "session".ljust(_LENGTH - len(str(pytester.path)) - 1, "_")
        self.folder.mkdir()
        monkeypatch.chdir(self.folder)
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        self._background: subprocess.Popen[bytes] | None = None
        self._ended = ExitStack()
        self._port = str(_free_port())

    def close(self) -> None:
        if self._background is not None:
            self._background.kill()
            self._background.wait()
        self._ended.close()

    def run(self, line: str) -> str:
        words = shlex.split(line.replace("$PORT", self._port))
        assignments = [word for word in words if _is_assignment(word)][: _leading_assignments(words)]
        words = words[len(assignments) :]
        background = words[-1] == "&"
        words = [name for word in words[: -1 if background else None] for name in _expanded(word)]
        words, stdin, target, appended = _redirected(words)
        with self._monkeypatch.context() as patch:
            for assignment in assignments:
                name, _, value = assignment.partition("=")
                patch.setenv(name, value)
            if background:
                self._start(words[1:])
                return ""
            result = self._command(words[0])(words[1:], stdin)
        if target is not None:
            with target.open("a" if appended else "w", encoding="utf-8", newline="") as file:
                file.write(result.out)
            result = Result("", result.err, result.code)
        return result.text()

    def _command(self, name: str) -> Callable[[Sequence[str], str], Result]:
        """Raises KeyError for an unknown name."""
        return {
            "evaltui": _evaltui,
            "pytest": self._pytest,
            "cat": lambda words, _: Result("".join(map(_content, words))),
            "json": _json,
            "digest": lambda words, _: Result("".join(map(_digest, words))),
            "ls": _ls,
            "echo": lambda words, _: Result(" ".join(words).replace("\\n", "\n") + "\n"),
            "edit": _edit,
            "rm": _rm,
            "gemini": self._gemini,
            "wait": self._wait,
            "interrupt": lambda *_: self._end(signal.SIGINT),
            "kill": lambda *_: self._end(signal.SIGKILL),
        }[name]

    def _pytest(self, words: Sequence[str], stdin: str) -> Result:
        without = [f"-pno:{plugin}" for plugin in _LEFT_OUT]
        result = self._pytester.runpytest_inprocess(*without, *words)
        return Result(result.stdout.str() + "\n", "\n".join(result.errlines), int(result.ret))

    def _start(self, words: Sequence[str]) -> None:
        assert self._background is None
        command = [sys.executable, "-m", "evaltui", *words]
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # Jobs in the background of a script begin so, and so would the process.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        places = self._outputs
        with places[0].open("wb") as out, places[1].open("wb") as err:
            self._background = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def _outputs(self) -> tuple[Path, Path]:
        """The files with the output of the background process, beside the folder of the session."""
        return self._pytester.path / "out.txt", self._pytester.path / "err.txt"

    def _wait(self, words: Sequence[str], stdin: str) -> Result:
        text, *files = words
        places = [Path(file) for file in files] or self._outputs

        def written() -> str:
            return "".join(path.read_text(errors="replace") for path in places if path.exists())

        wait_until(lambda: text in written(), written)
        return Result()

    def _end(self, number: signal.Signals) -> Result:
        assert self._background is not None
        self._background.send_signal(number)
        code = self._background.wait()
        self._background = None
        out, err = (path.read_text(encoding="utf-8") for path in self._outputs)
        return Result(out, err, code)

    def _gemini(self, words: Sequence[str], stdin: str) -> Result:
        server = self._ended.enter_context(GeminiServer())
        server.script(*map(_answer, json.loads(Path(words[0]).read_text(encoding="utf-8"))))
        server.use(self._monkeypatch)
        return Result()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier() and name.isupper()


def _leading_assignments(words: Sequence[str]) -> int:
    return next((place for place, word in enumerate(words) if not _is_assignment(word)), len(words))


def _expanded(word: str) -> list[str]:
    """The files that a pattern stands for; the word itself where there are none."""
    paths = Path().glob(word) if "*" in word and not word.startswith("/") else ()
    return sorted(map(str, paths)) or [word]


def _redirected(words: Sequence[str]) -> tuple[list[str], str, Path | None, bool]:
    """The words without redirections, standard input, the file for the output, and if it is appended."""
    rest, stdin, target, appended = [], "", None, False
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "<":
            stdin = Path(words.pop(0)).read_text(encoding="utf-8")
        elif word in (">", ">>"):
            target, appended = Path(words.pop(0)), word == ">>"
        else:
            rest.append(word)
    return rest, stdin, target, appended


def _evaltui(words: Sequence[str], stdin: str) -> Result:
    streams = [io.TextIOWrapper(io.BytesIO(text), encoding="utf-8") for text in (stdin.encode(), b"", b"")]
    saved = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    code: Any = 0
    try:
        main(words)
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved
    out, err = (_written(stream) for stream in streams[1:])
    return Result(out, err, code or 0)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    data = stream.detach()
    assert isinstance(data, io.BytesIO)
    return data.getvalue().decode()


def _content(name: str) -> str:
    path = Path(name)
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    if path.suffix == ".html":
        return text_of_html(text)
    return text if text.endswith("\n") else f"{text}\n(no newline at the end)\n"


def _json(words: Sequence[str], stdin: str) -> Result:
    data = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    for key in words[1:]:
        data = data[int(key) if isinstance(data, list) else key]
    return Result(_compact(without_durations(data)) + "\n")


def _compact(value: Any, indent: str = "", before: int = 0) -> str:
    """JSON with as much on a line as fits behind `before` characters."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + before + len(line) <= _WIDTH or not value or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        items = [_compact(item, inner) for item in value]
    else:
        keys = {name: f"{json.dumps(name, ensure_ascii=False)}: " for name in value}
        items = [keys[name] + _compact(item, inner, len(keys[name])) for name, item in value.items()]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{end}"


def _digest(name: str) -> str:
    data = Path(name).read_bytes()
    lines = data.count(b"\n")
    return f"{name}: {lines} lines, {hashlib.sha256(data).hexdigest()[:16]}\n"


def _ls(words: Sequence[str], stdin: str) -> Result:
    folder = Path(words[0])
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return Result("".join(f"{path.relative_to(folder)}\n" for path in files))


def _edit(words: Sequence[str], stdin: str) -> Result:
    path, old, new = words
    text = Path(path).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
    Path(path).write_text(text.replace(old, new), encoding="utf-8")
    return Result()


def _rm(words: Sequence[str], stdin: str) -> Result:
    for path in map(Path, words):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return Result()


def _answer(item: Any) -> Answer:
    if isinstance(item, int):
        return fails(item)
    if isinstance(item, str):
        return says(item)
    return calls(item["call"], item["args"])
