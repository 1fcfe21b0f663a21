"""Eval sets and configs that are there and cannot be read are errors; none is left out without a word."""

import json
import os
import shutil
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_set, make_turn

pytest_plugins = "pytester"
AGENT = "def root_agent(message, session): return message"


def write_set(path, said="hi"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(make_set(path.name.partition(".")[0], make_case("one", make_turn("hi", said))))
    )
    return path


@pytest.fixture
def agent(write_agent):
    folder = write_agent(AGENT)
    write_set(folder / "good.evalset.json")
    return folder


def dangling(name, target):
    def link(agent):
        path = agent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        return path, f"link to {target}, which does not exist"

    link.__name__ = f"a link {name} to nowhere"
    return link


def pipe(name):
    def make(agent):
        path = agent / name
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)
        return path, "cannot be read: a pipe has this name, not a file"

    make.__name__ = f"a pipe {name}"
    return make


def endless_link(agent):
    (agent / "bad.evalset.json").symlink_to("bad.evalset.json")
    return agent / "bad.evalset.json", "cannot be read: Too many levels of symbolic links"


def folder(agent):
    (agent / "bad.evalset.json").mkdir()
    return agent / "bad.evalset.json", "cannot be read: a folder has this name"


def dangling_folder_beside(agent):
    (agent.parent / "pyproject.toml").touch()
    (agent.parent / "tests").symlink_to("nowhere")
    return agent.parent / "tests", "link to nowhere, which does not exist"


def pointer_of_git_lfs(name):
    def make(agent):
        path = agent / name
        path.parent.mkdir(parents=True)
        path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n")
        reason = "not valid JSON: a pointer of Git LFS; `git lfs pull` fetches the file (column 1)"
        return path, reason

    make.__name__ = f"a pointer {name} of Git LFS"
    return make


def utf_16(agent):
    path = write_set(agent / "evals" / "safety.json")
    path.write_text(path.read_text(), encoding="utf-16")
    return path, "is UTF-16; save it as UTF-8"


def empty_list(agent):
    path = agent / "old.test.json"
    path.write_text("[]")
    reason = (
        "not an eval set: expected an object with eval_set_id and eval_cases, or (old formats) a list of "
        "turns with query or a list of sessions with name and data; found an empty list"
    )
    return path, reason


dangling_set = dangling("bad.evalset.json", "../data/bad.evalset.json")
dangling_config = dangling("test_config.json", "../shared/test_config.json")
UNREACHABLE = [
    dangling_set,
    dangling("evals/safety.json", "nowhere.json"),
    dangling("evals/bad.test.json", "nowhere"),
    dangling("evals/smoke/more.json", "nowhere"),
    dangling("evals", "../data/evals"),
    dangling("evals/more", "nowhere"),
    dangling_folder_beside,
    dangling_config,
    dangling("eval_config.json", "nowhere"),
    endless_link,
    pipe("bad.evalset.json"),
    pipe("evals/safety.json"),
    pipe("test_config.json"),
    folder,
    pointer_of_git_lfs("evals/data/safety.json"),
    utf_16,
    empty_list,
]
IN_NAMED_FOLDER = [
    dangling("golden/safety.json", "nowhere"),
    dangling("golden/more", "nowhere"),
    pipe("golden/safety.json"),
    pointer_of_git_lfs("golden/safety.json"),
]


@pytest.mark.parametrize("make", UNREACHABLE)
def test_it_is_an_error_of_run_and_of_lint(agent, make, capsys):
    path, reason = make(agent)
    assert call("metrics", agent) == 2
    place = f"{path}:1" if "JSON" in reason or make in (utf_16, empty_list) else f"{path}"
    assert f"{place}: {reason}" in capsys.readouterr().err
    assert call("lint", agent) == 1
    assert f"{place}: error: {reason}" in capsys.readouterr().out
    if make is dangling_config:
        for words in ((), (agent / "good.evalset.json", "--adk-verdicts")):
            assert call("run", agent, *words) == 2
            assert f"{path}: {reason}" in capsys.readouterr().err


def test_gaps_and_estimates_of_all_sets_need_every_set(agent, tmp_path, capsys):
    """The other sets would pass for all of them."""
    assert call("run", agent) == 0
    for number, make in enumerate(UNREACHABLE):
        copy = shutil.copytree(agent, tmp_path / f"copy_{number}" / "agent", symlinks=True)
        path, reason = make(copy)
        for words in (("gaps",), ("run", "--estimate")):
            capsys.readouterr()
            assert call(words[0], copy, *words[1:]) == 2, (make.__name__, words)
            assert reason in (told := capsys.readouterr().err), (make.__name__, words)
            assert str(path) in told


STRICT = '{"criteria": {"response_match_score": 1.0}}'


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 40,
        STRICT[:6].encode(),
        STRICT.encode("utf-16"),
        b'{"by": "Ren\xe9e",' + STRICT[1:].encode(),
    ],
    ids=repr,
)
def test_a_config_of_another_usual_name_that_cannot_be_read_is_not_replaced(agent, content, capsys):
    (agent / "eval_config.json").write_bytes(content)
    assert call("run", agent) == 2
    assert f"{agent / 'eval_config.json'}:1: " in capsys.readouterr().err
    assert call("lint", agent) == 1
    # With `config` in its name, it may be of another program.
    (agent / "eval_config.json").rename(agent / "app_config.json")
    capsys.readouterr()
    assert call("lint", agent) == 0
    is_text = content.startswith((b"\0", b'{"crit')) or not content
    assert ("warning: not read for good.evalset.json: " in capsys.readouterr().out) != is_text


def test_a_large_config_of_another_name_scores_its_sets(agent):
    write_set(agent / "bad.evalset.json", said="hi there")
    marks = [{"set": "good", "case": "one", "tags": ["a" * 1_000]}] * 1_000
    config = {"evaltui": {"tags": marks}, "criteria": {"response_match_score": 0.1}}
    for name in ("test_config.json", "strict_config.json"):
        (agent / name).write_text(json.dumps(config))
        assert call("run", agent) == 0
        (agent / name).unlink()
    assert call("run", agent) == 1


@pytest.mark.parametrize("make", IN_NAMED_FOLDER)
def test_in_a_folder_that_is_named_it_is_an_error_too(agent, make, capsys):
    _, reason = make(agent)
    write_set(agent / "golden" / "good.json")
    assert call("run", agent, agent / "golden") == 2
    assert f": {reason}" in capsys.readouterr().err
    assert call("lint", agent / "golden") == 1
    assert f": error: {reason}" in capsys.readouterr().out


def test_a_pointer_of_git_lfs_among_the_files_of_an_agent_is_named(agent, capsys):
    (agent / "safety.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n")
    assert call("run", agent) == 0
    assert "safety.json: not valid JSON: a pointer of Git LFS" in capsys.readouterr().err


def refuse_entering(monkeypatch, closed):
    """Makes a folder that another user could not read; the super-user may read all."""
    closed.mkdir(exist_ok=True)
    listed, stat = Path.iterdir, os.stat

    def refusing(folder):
        if folder == closed:
            raise PermissionError(13, "Permission denied")
        return listed(folder)

    def refusing_stat(path, **options):
        if not isinstance(path, int) and Path(os.fsdecode(path)).parent == closed:
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **options)

    monkeypatch.setattr(Path, "iterdir", refusing)
    monkeypatch.setattr(os, "stat", refusing_stat)


def test_a_folder_that_cannot_be_read_is_named(agent, monkeypatch, capsys):
    write_set(agent / "evals" / "bad.evalset.json", "other words")
    refuse_entering(monkeypatch, agent / "evals")
    for words, code in (("lint", 1), ("run", 2), ("run bad", 2), ("gaps bad", 2)):
        command, *selectors = words.split()
        assert call(command, agent, *selectors) == code
        assert "".join(capsys.readouterr()).count(f"{agent / 'evals'}: ") == 1


@pytest.mark.parametrize(
    "words", ["lint", "metrics", "rename tool a b", "score", "import --into new.evalset.json"]
)
def test_a_file_that_is_named_in_a_folder_that_cannot_be_read_is_named(agent, words, monkeypatch, capsys):
    named = write_set(agent / "evals" / "bad.evalset.json")
    refuse_entering(monkeypatch, agent / "evals")
    command, *more = words.split()
    place = len(more) if command == "rename" else 0
    assert call(command, *more[:place], named, *more[place:]) == 2
    assert f"{named}" in (told := capsys.readouterr().err)
    assert "Traceback" not in told


def test_a_folder_that_may_be_listed_and_not_entered_is_named(agent, monkeypatch, capsys):
    write_set(agent / "evals" / "deep" / "bad.evalset.json", "other words")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != agent / "evals" and access(path, mode))
    assert call("run", agent) == 2
    closed = "cannot be read: no permission to list and enter this folder; allow it with chmod u+rx"
    assert f"{agent / 'evals'}: {closed}" in capsys.readouterr().err
    assert call("lint", agent) == 1
    assert f"{agent / 'evals'}: error: {closed}" in capsys.readouterr().out


def test_a_folder_beside_the_agent_that_may_not_be_entered_is_named(agent, monkeypatch, capsys):
    (agent.parent / "pyproject.toml").touch()
    beside = agent.parent / "evals"
    refuse_entering(monkeypatch, beside)
    assert call("run", agent) == 2
    assert f"{beside}: cannot be read: " in capsys.readouterr().err


@pytest.mark.parametrize("make", UNREACHABLE)
def test_it_fails_in_pytest_too(agent, make, pytester):
    path, reason = make(agent)
    project = agent.parent
    (project / "pytest.ini").touch()
    (project / "pyproject.toml").touch()
    result = pytester.runpytest_inprocess("--evaltui", project)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    assert reason in result.stdout.str()
    assert path.name in result.stdout.str()


def test_pytest_walks_into_a_link_to_a_folder_above_and_collects_each_set_once(agent, pytester):
    (agent / "loop").symlink_to(agent)
    result = pytester.runpytest_inprocess("--evaltui", "--collect-only", agent)
    result.stdout.fnmatch_lines(["*1 test collected*"])


HINT = "{} looks like an eval set without the name: rename to NAME.evalset.json, or run and open by path"


def write_look_alike(path):
    """A file that was meant to be an eval set, and lacks its id."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"eval_cases": [{"eval_id": "one", "conversation": []}]}')
    return path


def test_a_set_of_another_name_is_named_and_keeps_the_others_from_passing_for_all(agent, capsys):
    other = write_look_alike(agent / "evals" / "safety.json")
    assert call("run", agent) == 2
    assert f"{HINT.format(other)}. To run without, name the eval sets to run" in capsys.readouterr().err
    assert call("run", agent, agent) == 2
    assert HINT.format(other) in capsys.readouterr().err
    assert call("lint", agent) == 1
    assert f"{other}: error: looks like an eval set" in capsys.readouterr().out
    assert call("run", agent, "good") == 0


def test_where_there_are_no_others_it_is_named_too(write_agent, pytester, capsys):
    agent = write_agent(AGENT)
    (agent / "pyproject.toml").touch()
    other = write_look_alike(agent / "evals" / "safety.json")
    for words in ((), (agent / "evals",)):
        assert call("run", agent, *words) == 2
        assert HINT.format(other) in capsys.readouterr().err
    assert call("lint", agent / "evals") == 1
    assert f"{other}: error: looks like an eval set" in capsys.readouterr().out
    result = pytester.runpytest_inprocess("--evaltui", agent)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{HINT.format(other)}, or name the eval sets to run"])


def test_pipes_among_the_files_of_an_agent_are_left_alone(agent, capsys):
    """Opening one would wait for a program that writes to it."""
    for folder in (agent / "recordings", agent / "data"):
        folder.mkdir()
    for name in ("tools.py", "tools.yaml", "prompt.md", "data/orders.json", "recordings/good.jsonl", "sink"):
        os.mkfifo(agent / name)
    assert call("run", agent) == 0
    assert call("run", agent, "--failed") == 2
    assert "nothing to run" in capsys.readouterr().err
    assert call("lint", agent) == 0
