"""The index of a run log: valid while the log grows, wherever it is cut, and whatever is damaged of it."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest
from evaltui.runs.log import RunLog
from evaltui.runs.log_index import index_parts
from evaltui.runs.log_reader import read_header, read_run, result_of

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.runs import log_index, log_lines
from evaltui.runs.store import RunStore

PATH = "s.evalset.json"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(log_index, "PART_RESULTS", 3)
    monkeypatch.setattr(log_index, "_PIECE", 300)
    monkeypatch.setattr(log_lines, "_PIECE", 150)


def written(folder, cases, *, closed=True, text="…"):
    log = RunLog.create(RunStore(folder), {})
    for number in range(cases):
        log.started(CaseId(PATH, f"case {number}"), "s", 0)
        log.event({"kind": "text", "path": PATH, "case": f"case {number}", "data": {"text": text}})
        log.result(CaseSummary("s", f"case {number}", Status.PASSED, passed=1, policy_met=True, path=PATH))
    if closed:
        log.close({"status": "PASSED"})
    return log.path


def listed(path):
    return [one.id.eval_id for one in read_run(path).results]


def finished_in(text):
    """The cases of the whole lines with a result, found without an index."""
    lines = [line for line in text.split(b"\n") if line.startswith(log_lines.RESULT)]
    found = []
    for line in lines:
        try:
            found.append(json.loads(line)["eval_id"])
        except ValueError:
            continue
    return found


def kinds(path):
    return [json.loads(line)["kind"] for line in path.read_bytes().splitlines()]


def test_a_log_that_grows_has_the_results_so_far(tmp_path):
    log = RunLog.create(RunStore(tmp_path), {})
    for number in range(11):
        log.result(CaseSummary("s", f"case {number}", Status.PASSED, path=PATH))
        assert listed(log.path) == [f"case {one}" for one in range(number + 1)]
    assert kinds(log.path).count("checkpoint") == 3
    log.close({"status": "PASSED"})
    assert listed(log.path) == [f"case {one}" for one in range(11)]
    assert kinds(log.path).count("index") == 11


def test_a_part_comes_after_so_many_bytes_too(tmp_path, monkeypatch):
    monkeypatch.setattr(log_index, "PART_BYTES", 2000)
    path = written(tmp_path, 2, closed=False, text="x" * 3000)
    assert kinds(path).count("checkpoint") == 2


def test_a_log_cut_anywhere_has_the_results_up_to_the_cut(tmp_path):
    path = written(tmp_path, 8)
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1, 7):
        path.write_bytes(whole[:cut])
        assert listed(path) == finished_in(whole[:cut]), cut
        case = CaseId(PATH, "case 4")
        assert (result_of(path, read_header(path), case, "s") is None) == ("case 4" not in listed(path))


def test_only_what_is_behind_the_last_checkpoint_is_read_line_by_line(tmp_path):
    path = written(tmp_path, 7, closed=False)
    text = path.read_bytes()
    behind = text.rindex(log_lines.CHECKPOINT)
    # Were these lines looked at, they would be found to be damaged.
    path.write_bytes(text[:behind].replace(log_lines.RESULT + b",", log_lines.RESULT + b";") + text[behind:])
    assert listed(path) == [f"case {one}" for one in range(7)]


def test_an_index_that_is_not_where_it_should_be_is_not_used(tmp_path):
    """Lines of a log that were taken out or put in move everything behind them."""
    path = written(tmp_path, 10)
    lines = path.read_bytes().splitlines(keepends=True)
    for at in range(1, len(lines)):
        for changed in (lines[:at] + lines[at + 1 :], [*lines[:at], b'{"kind":"state"}\n', *lines[at:]]):
            path.write_bytes(b"".join(changed))
            results = [line for line in changed if line.startswith(log_lines.RESULT)]
            # What the index has is right, also where a result behind the index is gone.
            assert set(listed(path)) >= {json.loads(line)["eval_id"] for line in results}


def test_a_log_with_random_bytes_is_read_or_refused(tmp_path):
    path = written(tmp_path, 8)
    whole = path.read_bytes()
    random.seed(20)
    for _ in range(200):
        at = random.randrange(len(whole))
        path.write_bytes(whole[:at] + random.randbytes(random.randrange(1, 30)) + whole[at + 5 :])
        with suppress(ValueError):
            assert set(listed(path)) <= {f"case {one}" for one in range(8)}


@pytest.mark.parametrize("footer", [{"index": [5, -1]}, {"index": "no"}, {}, {"index": [0, 10**9]}])
def test_with_a_wrong_footer_the_results_are_found_all_the_same(tmp_path, footer):
    path = written(tmp_path, 4)
    lines = path.read_bytes().splitlines(keepends=True)[:-1]
    path.write_bytes(b"".join(lines) + json.dumps({"kind": "footer", **footer}).encode().replace(b": ", b":"))
    assert listed(path) == [f"case {one}" for one in range(4)]


@pytest.mark.parametrize("version", [2, 3])
def test_logs_of_earlier_versions_have_one_part_at_their_end(tmp_path, monkeypatch, version):
    monkeypatch.setattr(log_index, "PART_RESULTS", 1000)
    path = written(tmp_path, 7)
    text = path.read_bytes().replace(b'"version":4', b'"version":%d' % version, 1)
    path.write_bytes(text)
    assert listed(path) == [f"case {one}" for one in range(7)]
    path.write_bytes(text[: text.index(log_lines.INDEX) + 40])
    assert listed(path) == [f"case {one}" for one in range(7)]


def test_a_case_that_was_finished_again_counts_as_it_was_last(tmp_path):
    log = RunLog.create(RunStore(tmp_path), {})
    for status in (Status.FAILED, Status.FAILED, Status.PASSED):
        for number in range(4):
            log.result(CaseSummary("s", f"case {number}", status, path=PATH))
    assert {one.summary.status for one in read_run(log.path).results} == {Status.PASSED}
    found = result_of(log.path, read_header(log.path), CaseId(PATH, "case 0"), "s")
    assert found.summary.status is Status.PASSED
    assert sum(len(part) for _, part in index_parts(log.path)) < log.path.stat().st_size
