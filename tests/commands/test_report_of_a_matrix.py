"""`evaltui report` of the runs of a matrix."""

from command_line import call
from stored_matrix import write_matrix


def test_stored_runs_of_a_matrix_are_reported_as_one(tmp_path, capsys):
    logs = [str(path) for path in write_matrix(tmp_path)]
    file = tmp_path / "matrix.md"
    assert call("report", *logs, "--report", f"markdown={file}") == 0
    assert "| <code>base</code> | <code>pro</code> |" in file.read_text(encoding="utf-8")
    assert call("report", *logs, "--report", "junit") == 2
    assert call("report", *logs, "--baseline", logs[0]) == 2
    assert "has a base of its own" in capsys.readouterr().err
    # One of them alone is a run.
    assert call("report", logs[0], "--report", f"markdown={file}") == 0
    assert "did not pass" in file.read_text(encoding="utf-8")
