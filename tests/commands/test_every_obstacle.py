"""Whatever stands where a file is read: the command refuses it, or names it; none passes it over."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import zlib
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config

import evaltui
from evaltui.workbench.workbench import Workbench

pytest_plugins = "pytester"
SUITE = (
    'providers: [x]\nprompts: ["{{q}}"]\ntests:\n- vars: {q: hi}\n  assert: [{type: contains, value: hi}]\n'
)


def listening(path, _):
    # The path of a socket is short.
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(path.parent)
        server.bind(path.name)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n"
OBSTACLES = {
    "link to nowhere": lambda path, _: path.symlink_to("nowhere"),
    "link to itself": lambda path, _: path.symlink_to(path.name),
    "pipe": lambda path, _: os.mkfifo(path),
    "socket": listening,
    "folder": lambda path, _: path.mkdir(),
    "nothing in it": lambda path, _: path.write_bytes(b""),
    "pointer of Git LFS": lambda path, _: path.write_bytes(LFS),
    "UTF-16": lambda path, old: path.write_text(old.decode("latin-1"), encoding="utf-16"),
    "marks of a conflict": lambda path, old: path.write_bytes(
        b"<<<<<<< HEAD\n" + old + b"\n=======\n" + old + b"\n>>>>>>> other\n"
    ),
    "the first half": lambda path, old: path.write_bytes(old[: len(old) // 2]),
    "no text": lambda path, _: path.write_bytes(bytes(range(128, 256)) * 20),
    "closed file": lambda path, old: (path.write_bytes(old), path.chmod(0)),
}
# What the text of a file cannot be told from: no settings, rows or variables, which may be right.
NO_SETTINGS = {"nothing in it", "the first half"}
AGENT, RUN = "my_agent", "one.sqlite"
OF_A_SET = (
    *("run", "run --estimate", "lint", "metrics", "gaps", "score trace.json --home", "evaluate", "pytest"),
    "workbench",
)
PLACES = {
    "my_agent/evals/orders.evalset.json": (*OF_A_SET, "export --set orders --format rows -o out.jsonl"),
    "my_agent/evals/test_config.json": OF_A_SET,
    "pyproject.toml": ("run", "lint", "metrics", "runs", "report", "gaps", "export --run last -o out.json"),
    "my_agent/.env": ("run", "evaluate"),
    RUN: (
        *("report one.sqlite", "compare one.sqlite two.sqlite", "merge one.sqlite two.sqlite -o m.sqlite"),
        *("run --baseline one.sqlite", "export --run one.sqlite -o out.json", "gaps --run one.sqlite"),
    ),
    "last": ("runs", "report", "run --failed", "gaps", "export --run last -o out.json", "compare 1 last"),
    "trace.json": ("score trace.json --home", "import trace.json --into n.evalset.json"),
    "traces/t.json": ("score traces --home", "import traces --into n.evalset.json"),
    "rows.csv": ("import rows.csv --into n.evalset.json",),
    "rows.jsonl": ("import rows.jsonl --into n.evalset.json",),
    "suite.yaml": ("import suite.yaml --into n.evalset.json",),
    "more/more.evalset.json": ("run more", "lint more"),
}
# Commands whose words go before the agent, or that need none.
OTHER = ("report", "merge", "import", "lint more", "score")
WITHOUT_HOSTS = ("lint", "metrics", "runs", "report", "compare", "merge", "export", "gaps", "import", "score")


def skipped(place, obstacle):
    if place == "my_agent/.env":
        # Of these python-dotenv reads what it can, and google-adk passes over what is no file.
        return obstacle in ("pipe", "socket", "folder", *NO_SETTINGS)
    if obstacle == "pipe" and (place.startswith(("rows", "trace.", "suite", "one")) or place == "last"):
        # Named by the user, as `<(command)` is; SQLite opens none.
        return True
    if place == "last" and obstacle in ("socket", "folder"):
        return True
    if place == "traces/t.json" and obstacle in ("folder", "nothing in it"):
        return True
    if place == "rows.csv" and obstacle in ("pointer of Git LFS", "the first half", "marks of a conflict"):
        return True
    return (place, obstacle) == ("pyproject.toml", obstacle) and obstacle in NO_SETTINGS


@pytest.fixture(scope="module")
def project(tmp_path_factory, host_template):
    folder = tmp_path_factory.mktemp("project")
    agent = folder / AGENT
    (agent / "evals").mkdir(parents=True)
    (agent / "agent.py").write_text("def root_agent(message, session): return message\n")
    write_eval_set(agent / "evals", "orders", make_case("one", make_turn("hi", "hi")))
    write_test_config(agent / "evals", response_match_score=0.5)
    (agent / ".env").write_text("X=1\n")
    (folder / "pyproject.toml").write_text("[tool.evaltui]\nparallel = 2\n")
    (folder / "rows.csv").write_text("id,question,answer\na,hi,hi\n")
    (folder / "rows.jsonl").write_text('{"id": "a", "question": "hi", "answer": "hi"}\n')
    (folder / "suite.yaml").write_text(SUITE)
    for name in ("more", "traces"):
        (folder / name).mkdir()
    write_eval_set(folder / "more", "more", make_case("two", make_turn("hi", "hi")))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        assert [call("run", AGENT), call("run", AGENT)] == [0, 0]
        assert call("export", AGENT, "--run", "last", "-o", "trace.json") == 0
    shutil.copy(folder / "trace.json", folder / "traces" / "t.json")
    for name, run in zip((RUN, "two.sqlite"), runs_of(folder), strict=True):
        shutil.copy(run, folder / name)
    return folder


def runs_of(folder):
    return sorted((folder / AGENT / ".evaltui" / "runs").glob("*.sqlite"))


async def opened():
    workbench = Workbench(Path(AGENT))
    await workbench.open()
    try:
        return " ".join(problem.located() for one in workbench.sets.listed for problem in one.problems) + str(
            workbench.sets.config_now(Path(AGENT, "evals", "orders.evalset.json"))
        )
    finally:
        await workbench.close()


def outcome(words, capsys, pytester):
    """The exit code and what is told."""
    if words == "workbench":
        return 1, asyncio.run(opened())
    if words == "evaluate":
        try:
            result = evaltui.evaluate_sync(AGENT)
        except ValueError as error:
            return 2, str(error)
        return int(not result.passed), " ".join(map(repr, result.cases))
    if words == "pytest":
        result = pytester.runpytest_inprocess("--evaltui", Path(AGENT).absolute(), "-p", "no:cacheprovider")
        return int(result.ret), result.stdout.str()
    command, *more = words.split()
    of_agent = [] if words.startswith(OTHER[:-1]) and len(more) > 0 else [AGENT]
    order = [*more, *of_agent] if command == "score" else [*of_agent, *more]
    code = call(command, *order)
    return code, "".join(capsys.readouterr())


@pytest.mark.parametrize("place", PLACES)
def test_no_command_passes_an_obstacle_over(
    place, project, tmp_path, monkeypatch, capsys, pytester, thorough
):
    wrong = []
    for obstacle, put in OBSTACLES.items():
        if skipped(place, obstacle) or (obstacle == "closed file" and os.geteuid() == 0):
            continue
        for words in PLACES[place]:
            case = f"{obstacle} at {place}: {words}"
            if not thorough and zlib.crc32(case.encode()) % (3 if words.startswith(WITHOUT_HOSTS) else 8):
                continue
            copy = tmp_path / f"{len(wrong)}" / str(zlib.crc32(case.encode()))
            shutil.copytree(project, copy, symlinks=True)
            monkeypatch.chdir(copy)
            path = runs_of(copy)[-1] if place == "last" else copy / place
            old = path.read_bytes()
            path.unlink()
            put(path, old)
            code, told = outcome(words, capsys, pytester)
            is_named = path.name in "".join(told.split()).replace("\n", "")
            if not is_named or (not code and words != "runs") or "Traceback" in told:
                wrong.append((case, code, told[-300:]))
    assert not wrong, "\n".join(map(str, wrong))
