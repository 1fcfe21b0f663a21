import json
import os

from command_line import call

TURN = {"user_content": "hello"}


def write(folder):
    path = folder / "a.evalset.json"
    path.write_text(json.dumps({"evalSetId": "a", "eval_cases": [{"eval_id": "x", "conversation": [TURN]}]}))
    config = folder / "test_config.json"
    config.write_text(json.dumps({"criteria": {"trajectory_recall": 1}}, indent=2))
    return path, config


def test_fix_says_what_it_mends_and_finds_nothing_the_second_time(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, config = write(tmp_path)
    assert call("lint", ".") == 1
    assert capsys.readouterr().err == "1 error, 2 warnings; --fix mends 3\n"
    assert call("lint", "--fix", ".") == 0
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err.splitlines() == [
        "a.evalset.json:1: fixed: eval_cases[0].conversation[0].user_content: text written as a content",
        "a.evalset.json:1: fixed: evalSetId: renamed to eval_set_id, which ADK reads",
        "test_config.json:3: fixed: criteria.trajectory_recall: moved to evaltui.criteria",
        "0 errors, 0 warnings",
    ]
    assert json.loads(config.read_text()) == {
        "criteria": {},
        "evaltui": {"criteria": {"trajectory_recall": 1}},
    }
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert call("lint", "--fix", ".") == 0
    assert capsys.readouterr().err == "0 errors, 0 warnings\n"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


COMMENTED = """\
// A set
{
  "eval_set_id": "a", // its "id"
  /* over
     two lines */
  "eval_cases": [
    { # First case
      "eval_id": "http://x", "conversation": [{"user_content": {"parts": [{"text": "hi, }"}]},},]
    },
  ]
}
"""


def test_comments_and_last_commas_are_named_and_removed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.evalset.json"
    path.write_text(COMMENTED)
    assert call("lint", ".") == 1
    said = capsys.readouterr()
    assert (
        "a.evalset.json:1: error: not valid JSON: a comment; `evaltui lint --fix FILE` removes comments"
        in said.out
    )
    assert said.err == "1 error, 0 warnings; --fix mends 7\n"
    assert call("lint", "--fix", ".") == 0
    assert (
        path.read_text()
        == """\
{
  "eval_set_id": "a",
  "eval_cases": [
    {
      "eval_id": "http://x", "conversation": [{"user_content": {"parts": [{"text": "hi, }"}]}}]
    }
  ]
}
"""
    )
    said = capsys.readouterr()
    assert "a.evalset.json:3: fixed: comment removed" in said.err


def test_comments_stay_in_a_file_that_is_broken_otherwise(tmp_path, capsys):
    path = tmp_path / "a.evalset.json"
    path.write_text(COMMENTED[:-3])
    before = path.read_bytes()
    assert call("lint", "--fix", tmp_path) == 1
    assert path.read_bytes() == before


def test_diff_shows_the_changes_and_makes_none(tmp_path, capsys):
    path, config = write(tmp_path)
    before = path.read_bytes(), config.read_bytes()
    assert call("lint", "--fix", "--diff", tmp_path) == 1
    shown = capsys.readouterr()
    assert (path.read_bytes(), config.read_bytes()) == before
    assert f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-" in shown.out
    assert '-    "trajectory_recall": 1\n' in shown.out
    assert shown.err == "3 problems to mend in 2 files\n"
    call("lint", "--fix", tmp_path)
    capsys.readouterr()
    assert call("lint", "--diff", tmp_path) == 0
    assert capsys.readouterr() == ("", "0 problems to mend\n")


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
    path, _ = write(tmp_path)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaltui.commands.lint.save", refuse)
    before = path.read_bytes()
    assert call("lint", "--fix", path) == 2
    assert capsys.readouterr().err == f"evaltui lint: {path} cannot be written: {os.strerror(28)}\n"
    assert path.read_bytes() == before


def test_what_is_mended_is_not_between_the_problems_of_a_format(tmp_path, capsys):
    write(tmp_path)
    assert call("lint", "--fix", "--format", "json", tmp_path) == 0
    assert json.loads(capsys.readouterr().out) == {"version": 1, "problems": []}
