"""`evaltui run --shard I/N`: every case is in one shard, and the shards merged are the whole run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from command_line import call
from fake_runs import run_without_processes
from numbered_cases import act, assert_same_run, logs_of, write_set

from evaltui.core.model.case_id import CaseId
from evaltui.runs.history import open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.shards import read_durations
from evaltui.runs.store import RunStore
from tests.stored_runs import change

CONFIG = {"criteria": {"response_match_score": 1.0}}


@pytest.fixture
def agent(write_agent, monkeypatch: pytest.MonkeyPatch) -> Path:
    run_without_processes(monkeypatch, act)
    folder: Path = write_agent("root_agent = lambda message: message")
    (folder / "test_config.json").write_text(json.dumps(CONFIG))
    return folder


def cases_of(log: Path) -> list[CaseId]:
    return [case for case, _ in RunFile(log).header.selected()]


def test_shards_merged_are_the_whole_run(agent, tmp_path, capsys, thorough):
    """Whatever is selected, however often, and whatever is known of durations."""
    chance = random.Random(17)
    for number in range(40 if thorough else 4):
        for old in agent.glob("*.evalset.json"):
            old.unlink()
        sets = {f"set_{one}": chance.sample(range(100), chance.randint(1, 12)) for one in range(3)}
        for name, numbers in sets.items():
            write_set(agent, name, numbers)
        words = ["--runs", str(chance.randint(1, 2))]
        for name, numbers in sets.items():
            some = chance.sample(numbers, chance.randint(1, len(numbers)))
            ids = ",".join(f"case_{one}" for one in some)
            words.append(chance.choice([name, f"{name}:{ids}"]))
        if chance.random() < 0.5:
            durations = tmp_path / f"{number}.json"
            known = {f"case_{one}": chance.random() for one in chance.sample(range(100), 60)}
            durations.write_text(json.dumps({f"{name}.evalset.json": known for name in sets}))
            words += ["--durations", str(durations)]
        (whole,) = logs_of(agent, words[: words.index("--durations")] if "--durations" in words else words)
        count = chance.choice([2, 3, 8])
        shards = logs_of(agent, *([*words, "--shard", f"{i}/{count}"] for i in range(1, count + 1)))
        found = [case for log in shards for case in cases_of(log)]
        assert sorted(found) == sorted(cases_of(whole))
        chance.shuffle(shards)
        # The log of one that was done twice changes nothing.
        merged = tmp_path / f"merged-{number}.sqlite"
        assert call("merge", *shards, shards[0], "-o", merged) in (0, 1, 3)
        assert_same_run(merged, whole)


def test_an_empty_shard_says_so_and_merges(agent, tmp_path, capsys):
    write_set(agent, "lonely", [1])
    codes = {}
    for number in (1, 2):
        report = tmp_path / "report.json"
        codes[number] = call("run", agent, "--shard", f"{number}/2", "--report", f"json={report}")
        if json.loads(report.read_text())["cases"] == []:
            assert f"shard {number}/2 has none of the 1 case" in capsys.readouterr().out
            assert json.loads(report.read_text())["status"] == "NOT_EVALUATED"
    assert codes == {1: 0, 2: 0}
    logs = RunStore(agent).files()
    assert sorted(len(cases_of(log)) for log in logs) == [0, 1]
    empty = min(logs, key=lambda log: len(cases_of(log)))
    assert call("run", agent, "--resume", empty.stem) == 2
    assert "Nothing to resume: the shard has no case" in capsys.readouterr().err
    assert call("merge", empty, "-o", tmp_path / "half.sqlite") == 3
    assert "1 missing: " not in capsys.readouterr().out
    assert call("merge", *logs, "-o", tmp_path / "merged.sqlite") == 0
    assert call("merge", tmp_path / "half.sqlite", *logs, "-o", tmp_path / "merged.sqlite") == 0


def test_shards_of_other_plans_are_refused(agent, tmp_path, capsys):
    write_set(agent, "first", range(8))
    write_set(agent, "second", [1])
    durations = tmp_path / "durations.json"
    durations.write_text('{"first.evalset.json": {"case_1": 3}}')
    (one,) = logs_of(agent, ["first", "--shard", "1/2"])
    for words, says in {
        ("first", "--shard", "2/3"): "2 shards → 3",
        ("first", "--shard", "2/2", "--durations", str(durations)): "divided by other durations",
        ("first:case_1,case_2", "--shard", "2/2"): "selected cases of first.evalset.json changed",
        ("--shard", "2/2"): "only one of them selects second.evalset.json",
        ("first",): "only one of them is of a shard",
    }.items():
        (other,) = logs_of(agent, words)
        capsys.readouterr()
        assert call("merge", one, other, "-o", tmp_path / "merged.sqlite") == 2
        assert says in capsys.readouterr().err
    write_set(agent, "first", [*range(8), 9])
    (other,) = logs_of(agent, ["first", "--shard", "2/2"])
    assert call("merge", one, other, "-o", tmp_path / "merged.sqlite") == 2


def test_durations_make_shards_that_take_equally_long(agent, tmp_path):
    write_set(agent, "first", range(40))
    seconds = {f"case_{number}": 1.0 + number for number in range(39)}
    durations = tmp_path / "durations.json"
    durations.write_text(json.dumps({"first.evalset.json": seconds}))
    logs = logs_of(agent, *(["--shard", f"{i}/4", "--durations", str(durations)] for i in range(1, 5)))
    loads = [sum(seconds.get(case.eval_id, 20.0) for case in cases_of(log)) for log in logs]
    assert max(loads) - min(loads) <= 40
    assert sum(map(len, map(cases_of, logs))) == 40


def test_one_case_more_moves_no_other(agent):
    def shard_of() -> dict[CaseId, int]:
        logs = logs_of(agent, *(["--shard", f"{i}/3"] for i in (1, 2, 3)))
        return {case: number for number, log in enumerate(logs) for case in cases_of(log)}

    write_set(agent, "first", range(20))
    before = shard_of()
    write_set(agent, "first", [99, *range(20)])
    after = shard_of()
    assert {case: after[case] for case in before} == before


def test_durations_are_stored_and_kept(agent, tmp_path, capsys):
    write_set(agent, "first", [0, 1])
    file = tmp_path / "durations.json"
    file.write_text('{"other.evalset.json": {"a": 7}}')

    def known() -> list[CaseId]:
        return sorted(read_durations(file))

    # The made-up agent takes no time at all, which nobody has measured.
    assert call("run", agent, "--store-durations", file) == 0
    assert known() == [("other.evalset.json", "a")]
    log = RunStore(agent).latest()
    change(log, "UPDATE repeats SET result = json_set(result, '$.seconds', 2.5)")
    assert call("merge", log, "-o", tmp_path / "all.sqlite", "--store-durations", file) == 0
    assert known() == [
        ("first.evalset.json", "case_0"),
        ("first.evalset.json", "case_1"),
        ("other.evalset.json", "a"),
    ]
    file.write_text("[1]")
    for words in (("--shard", "1/2", "--durations", file), ("--durations", file)):
        assert call("run", agent, *words) == 2
    assert call("run", agent, "--store-durations", file) == 3
    assert "not an object of durations" in capsys.readouterr().err
    assert file.read_text() == "[1]"
    assert call("run", agent, "--shard", "1/1", "--durations", tmp_path / "none.json") == 0
    assert "does not exist; the cases are divided by a hash" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", " ", "1/" + "9" * 5000])
def test_what_is_no_shard_is_a_usage_error(agent, capsys, text):
    write_set(agent, "first", [0])
    assert call("run", agent, f"--shard={text}") == 2
    assert "is not a shard I/N with I from 1 to N, e.g. 3/8" in capsys.readouterr().err


def test_a_shard_is_resumed_as_a_shard(agent, tmp_path, capsys):
    write_set(agent, "first", [*range(7), 17, 27, 37])
    (whole,) = logs_of(agent, [])
    shards = logs_of(agent, ["--shard", "1/2"], ["--shard", "2/2"])
    broken = next(log for log in shards if any(case.eval_id == "case_17" for case in cases_of(log)))
    resumed = logs_of(agent, ["--resume", broken.stem])
    other = next(log for log in shards if log != broken)
    assert call("merge", *resumed, other, "-o", tmp_path / "all.sqlite") == 1
    assert_same_run(tmp_path / "all.sqlite", whole)
    assert call("run", agent, "--resume", "last", "--shard", "1/2") == 2
    assert "leave out --shard" in capsys.readouterr().err


def test_a_shard_is_compared_with_a_whole_run(agent, capsys):
    write_set(agent, "first", [0, 1, 2, 3, 4, 5])
    (whole,) = logs_of(agent, [])
    for number in (1, 2):
        words = ("--shard", f"{number}/2", "--baseline", whole.stem, "--fail-on-regression")
        assert call("run", agent, *words) == 0
        assert "gone" not in capsys.readouterr().out


def test_shards_of_a_real_agent_are_the_whole_run(write_agent, tmp_path):
    agent = write_agent("""
        async def root_agent(message, session):
            return "wrong" if message.endswith("3") else "right"
    """)
    (agent / "test_config.json").write_text(json.dumps(CONFIG))
    write_set(agent, "first", range(10))

    shards = logs_of(agent, ["--shard", "1/2"], ["--shard", "2/2"])
    (whole,) = logs_of(agent, ["--store-durations", tmp_path / "durations.json"])
    assert call("merge", *shards, "-o", tmp_path / "merged.sqlite") == 1
    assert_same_run(tmp_path / "merged.sqlite", whole)
    assert len(read_durations(tmp_path / "durations.json")) == 10
    assert open_run(tmp_path / "merged.sqlite").seconds
