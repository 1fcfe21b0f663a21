"""`evaltui run --record` and `--tools`: flags, summary, JSON report, what goes wrong."""

from __future__ import annotations

import subprocess

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from gemini_server import calls, says

from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore

AGENT = """
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="gemini-test", instruction="Greet.")
"""


@pytest.fixture
def gemini(gemini):
    gemini.respond = lambda request: says(f"Hello, {request.said}.")
    return gemini


@pytest.fixture
def agent(write_agent):
    folder = write_agent(AGENT)
    write_eval_set(
        folder, "greetings", make_case("one", make_turn("Ann", "Hello, Ann.", intermediate_data={}))
    )
    return folder


def git(folder, *words):
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("others", [(), ("second",)])
def test_recordings_of_a_set_whose_id_is_like_the_name_of_a_file_are_replayed(agent, gemini, capsys, others):
    for name in ("greetings", *others):
        path = write_eval_set(
            agent, name, make_case("one", make_turn("Ann", "Hello, Ann.", intermediate_data={}))
        )
        path.write_text(path.read_text().replace(f'"{name}"', '"greetings.evalset"'))
    assert call("run", agent, "--record", "auto") == 0
    assert call("run", agent, "--record", "replay") == 0
    assert call("lint", agent) == 0
    assert "not read" not in capsys.readouterr().out


def test_a_plain_run_writes_nothing_beside_the_sets(agent, gemini, capsys):
    assert call("run", agent) == 0
    assert not (agent / "recordings").exists()
    assert "live model call" not in capsys.readouterr().out


def test_the_summary_tells_live_from_replayed_and_git_sees_no_change(agent, gemini, capsys):
    assert call("run", agent, "--record", "auto") == 0
    out = capsys.readouterr().out
    assert "greetings (1 case, 1 run each, recordings auto, 4 at once)" in out
    assert "1 live model call, 0 replayed" in out
    git(agent, "init", "-q")
    git(agent, "add", "recordings")
    git(agent, "commit", "-qm", "recordings")

    assert call("run", agent, "--record", "record") == 0
    assert call("run", agent, "--record", "replay") == 0
    assert "0 live model calls, 1 replayed" in capsys.readouterr().out
    assert git(agent, "status", "--porcelain", "recordings") == ""
    assert len(gemini.requests) == 2


def test_a_replay_is_resumed_only_by_the_recordings_that_finished_cases_used(agent, gemini, capsys):
    turns = {name: make_turn(name, f"Hello, {name}.", intermediate_data={}) for name in ("Ann", "Bo")}
    write_eval_set(agent, "greetings", *(make_case(name, turn) for name, turn in turns.items()))
    assert call("run", agent, "greetings:Ann", "--record", "record") == 0
    assert call("run", agent, "--record", "replay") == 3
    replayed = RunStore(agent).latest()
    assert call("run", agent, "greetings:Bo", "--record", "record") == 0
    assert call("run", agent, "--resume", replayed.stem) == 0

    gemini.respond = lambda request: says("Go away.")
    assert call("run", agent, "greetings:Ann", "--record", "record") == 1
    capsys.readouterr()
    assert call("run", agent, "--resume", replayed.stem) == 2
    assert "recordings of finished cases changed: Ann" in capsys.readouterr().err


def test_a_file_that_is_no_text_is_wrong_use(agent, gemini, capsys):
    (agent / "recordings").mkdir()
    (agent / "recordings" / "greetings.jsonl").write_bytes(b"\xff\xfe")
    assert call("run", agent, "--record", "auto") == 2
    assert "greetings.jsonl" in capsys.readouterr().err


def test_an_unknown_mode_in_the_config_is_named(agent, capsys):
    write_test_config(agent, criteria={}, evaltui={"tools": {"send": "fake"}})
    assert call("run", agent) == 2
    err = capsys.readouterr().err
    assert "evaltui.tools.send" in err
    assert "live" in err


def test_a_resumed_run_goes_on_as_it_was_begun(agent, gemini, capsys):
    call("run", agent, "--record", "auto")
    assert RunFile(RunStore(agent).latest()).header.settings.record == "auto"
    assert call("run", agent, "--resume", "last", "--record", "off") == 2
    assert "leave out --record" in capsys.readouterr().err


def record_twice(agent, gemini, file, mode):
    """The lines of two recordings of the same case, the second with another answer."""
    recorded = []
    for answer in ("Hello, Ann.", "Go away."):
        gemini.respond = lambda request, answer=answer: says(answer)
        assert call("run", agent, "--record", mode) in (0, 1)
        recorded += file.read_text().splitlines(keepends=True)
    return list(dict.fromkeys(recorded))


@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_a_merge_that_keeps_both_answers_to_a_request_is_refused(agent, gemini, capsys, mode):
    file = agent / "recordings" / "greetings.jsonl"
    both = record_twice(agent, gemini, file, "record")
    file.write_text("".join(both))
    capsys.readouterr()
    assert call("run", agent, "--record", mode) == 2
    err = capsys.readouterr().err
    assert f"greetings.jsonl:{len(both)}: answers the request of line {len(both) - 1} otherwise" in err
    assert "Delete one of both lines" in err
    assert file.read_text() == "".join(both)


LOTTERY = """
    import itertools
    from evaltui import Agent

    numbers = itertools.count()

    def draw() -> int:
        "Draws a number."
        return next(numbers)

    root_agent = Agent(name="lottery", model="gemini-test", instruction="Draw.", tools=[draw])
"""


@pytest.mark.parametrize("draws", [1, 2])
def test_a_replay_tells_where_one_of_several_results_of_a_call_was_not_used(
    write_agent, gemini, capsys, draws
):
    folder = write_agent(LOTTERY)
    turn = make_turn("Go", "Done", [{"name": "draw", "args": {}}] * 2)
    write_eval_set(folder, "draws", make_case("one", turn))

    def respond(request):
        rounds = sum(content["role"] == "model" for content in request.contents)
        return says("Done") if rounds == drawn else calls("draw", {})

    drawn = 2
    gemini.respond = respond
    assert call("run", folder, "--record", "off", "--tools", "record") == 0
    drawn = draws
    capsys.readouterr()
    call("run", folder, "--record", "off", "--tools", "stub")
    call("run", folder, "--record", "off", "--tools", "stub")
    note = "turn 1: a request has several answers of tool draw, and the last was not used"
    assert (note in " ".join(capsys.readouterr().out.split())) is (draws == 1)
