"""`evaltui serve` on the command line: what it refuses, what it says, and how it ends."""

from __future__ import annotations

import ast
import asyncio
import errno
import math
from contextlib import asynccontextmanager
from pathlib import Path
from socket import gaierror

import pytest
import textual_serve.server

import evaltui
from evaltui.commands.network import address_in_words
from evaltui.commands.parser import parser_of
from evaltui.commands.serve import _serve
from evaltui.serving import server
from evaltui.serving.access import Access
from evaltui.serving.server import FILES, IDLE_SECONDS
from tests.commands.command_line import call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--origin https://NAME:PORT"),
        (["--host", "192.0.2.1"], "--tls-cert and --tls-key, or --origin"),
        (["--origin", "desk.example"], "is not an origin, e.g. https://desk.example"),
        (["--origin", "https://desk.example/tui"], "has more than an origin"),
        (["--tls-key", "key.pem"], "--tls-key needs --tls-cert"),
        (["--tls-cert", "missing.pem"], "missing.pem: No such file"),
        (["--token-env", "NO_SUCH_VARIABLE"], "it is not set"),
        (["--token-env", "SHORT"], "the token is too short: take at least 16 characters"),
    ],
)
def test_wrong_use_is_refused_before_anything_listens(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHORT", "secret")
    assert call("serve", ".", *words) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.startswith("evaltui serve: ")
    assert told.err.count("\n") == 1
    assert not told.out


@pytest.mark.parametrize("words", [["--token", "hunter2"], ["--token=hunter2"], [".", "--token", "hunter2"]])
def test_a_token_given_for_its_variable_is_shown_nowhere(words, capsys):
    with pytest.raises(SystemExit) as ended:
        parser_of("serve").parse(words)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "Did you mean --token-env?" in told
    assert "hunter2" not in told


def test_the_env_file_of_an_agent_in_a_file_is_beside_it(tmp_path, capsys):
    (tmp_path / "agent.py").touch()
    assert call("serve", tmp_path / "agent.py", "--token-env", "NO_SUCH_VARIABLE") == 2
    assert f"or in {tmp_path / '.env'}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EADDRINUSE, "('vm', 80)"), "port 80 of vm is in use; --port 0 takes a free one"),
        (
            OSError(errno.EACCES, "('vm', 80)"),
            "port 80 of vm is not for this user; --port 0 takes a free one",
        ),
        (OSError(errno.EADDRNOTAVAIL, "('vm', 80)"), "--host vm is not an address of this machine"),
        (OSError("could not bind on any address out"), "--host vm is not an address of this machine"),
        (gaierror(-2, "unknown"), "--host vm is not known here: give an address of this machine"),
        (OSError(errno.EMFILE, "Too many open files"), "vm:80: Too many open files"),
    ],
)
def test_why_an_address_cannot_be_had_is_said_once(error, said):
    assert address_in_words(error, "vm", 80) == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "x"], "argument --port: 'x' is not a port from 0 to 65535\n"),
        (["--host", ""], "argument --host: the value is empty\n"),
    ],
)
def test_wrong_ports_and_hosts(words, said, capsys):
    with pytest.raises(SystemExit):
        parser_of("serve").parse(words)
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        ("VM", "vm"),
        ("localhost.", "localhost"),
        ("[::1]", "::1"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("[2001:db8::]", "2001:db8::"),
    ],
)
def test_hosts_are_as_browsers_write_them(given, bound):
    assert parser_of("serve").parse([".", "--host", given]).host == bound


@pytest.mark.parametrize(("words", "idle"), [([], IDLE_SECONDS), (["--read-only"], math.inf)])
def test_who_only_looks_may_do_so_for_ever(words, idle, tmp_path, monkeypatch):
    seen = []

    @asynccontextmanager
    async def full(served, access, port, tls, limits, refused):
        seen.append(limits.idle)
        raise OSError
        yield

    monkeypatch.setattr(server, "serving", full)
    assert call("serve", tmp_path, *words) == 2
    assert seen == [idle]


@pytest.mark.parametrize(
    ("host", "shown", "is_printed"),
    [("192.0.2.1", "at https://desk.example/", False), ("127.0.0.1", "or https://desk.example/", True)],
)
async def test_no_address_is_printed_at_which_others_could_read_the_token(
    host, shown, is_printed, tmp_path, capsys, monkeypatch
):
    @asynccontextmanager
    async def begun(served, access, port, tls, limits, refused):
        serving.cancel()
        yield f"http://{access.host}:8700"

    monkeypatch.setattr(server, "serving", begun)
    options = parser_of("serve").parse([str(tmp_path), "--host", host])
    access = Access(options.host, "a-token-of-some-length", origins=("https://desk.example",))
    serving = asyncio.create_task(_serve(options, access, None))
    assert await serving == 130
    told = capsys.readouterr().out
    assert shown in told
    assert (f"http://{host}:8700/" in told) is is_printed


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys):
    assert call("serve", tmp_path / "none") == 2
    assert "does not exist" in capsys.readouterr().err


def test_commands_without_a_browser_do_not_load_it():
    importers = {
        path: ast.parse(text)
        for path in Path(evaltui.__file__).parent.rglob("*.py")
        if path.parent.name != "serving" and "evaltui.serving" in (text := path.read_text(encoding="utf-8"))
    }
    assert {path.name for path in importers} == {"serve.py"}
    loaded = [node for tree in importers.values() for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert "evaltui.serving.server" not in {node.module for node in loaded}


def test_the_script_of_textual_serve_is_the_one_that_the_page_is_made_for():
    """What the page and the server rely on has no promise: to be looked at with every new version."""
    assert all(path.is_file() for path in FILES.values())
    assert FILES["textual.js"].is_relative_to(textual_serve.server.__file__.rpartition("/")[0])
    script = FILES["textual.js"].read_text(encoding="utf-8")
    for relied_on in (
        'querySelectorAll(".textual-terminal")',
        "dataset.sessionWebsocketUrl",
        "dataset.fontSize",
        '"?width="+',
        '"&height="+',
        'JSON.stringify(["stdin",e])',
        '["resize",this.size]',
        "{width:e.cols,height:e.rows}",
        '["ping",""+e]',
        'case"pong"',
        'classList.add("-first-byte")',
        'classList.add("-closed")',
        "'Roboto Mono'",
        "new Uint8Array(e.data)",
    ):
        assert relied_on in script, relied_on
    assert "https://" not in script.replace("https://github.com", "")
