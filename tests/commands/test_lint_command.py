import json
import os

from command_line import call
from eval_data import make_case

TURN = {"user_content": "hello"}


def write(folder):
    path = folder / "a.evalset.json"
    path.write_text(json.dumps({"evalSetId": "a", "eval_cases": [make_case("x", TURN)]}))
    config = folder / "test_config.json"
    config.write_text(json.dumps({"criteria": {"trajectory_recall": 1}}, indent=2))
    return path, config


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


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
    path, _ = write(tmp_path)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaltui.commands.output.save_together", refuse)
    before = path.read_bytes()
    assert call("lint", "--fix", path) == 2
    assert capsys.readouterr().err == f"evaltui lint: {path} cannot be written: {os.strerror(28)}\n"
    assert path.read_bytes() == before


def test_what_is_mended_is_not_between_the_problems_of_a_format(tmp_path, capsys):
    write(tmp_path)
    assert call("lint", "--fix", "--format", "json", tmp_path) == 0
    assert json.loads(capsys.readouterr().out) == {"version": 1, "problems": []}
