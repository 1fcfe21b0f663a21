"""The matrices among stored runs."""

from stored_matrix import BASE, PRO, write_matrix, write_variant

from evaltui.core.compare.matrix import Paired
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.core.model.variants import Change
from evaltui.runs.matrices import open_matrix, stored_matrices
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore


def test_the_runs_of_a_matrix_are_found_and_read(tmp_path):
    logs = write_matrix(tmp_path)
    store = RunStore(tmp_path)
    begin_run(store, RunHeader()).close(Ending(Status.PASSED))
    (store.folder / "20990101T000000.000Z-broken.sqlite").write_text("no run\n")
    [stored] = stored_matrices(store)
    assert stored.paths == tuple(logs)
    opened = open_matrix(stored)
    assert [opened.matrix.name(place) for place in (0, 1)] == ["base", "pro"]
    assert opened.matrix.paired[1] == Paired(better=2, worse=0, cases=4)
    night = CaseId("thermostat.evalset.json", "night")
    assert [len(run.case(night).repeats) for run in opened.runs] == [5, 5]
    assert opened.matrix.is_complete
    assert list(opened.matrix.sets) == ["lights.evalset.json", "thermostat.evalset.json"]


def test_of_a_variant_the_last_run_counts_and_an_open_one_is_told(tmp_path):
    changes = Change("model", "gemini-2.5-pro")
    not_all = {**PRO, "thermostat": {"night": "p", "away": ""}}
    write_variant(tmp_path, "pro", not_all, changes)
    write_variant(tmp_path, "base", BASE)
    again = write_variant(tmp_path, "pro", not_all, changes)
    [stored] = stored_matrices(RunStore(tmp_path))
    assert [log.name for log in stored.logs] == ["pro", "base"]
    assert stored.paths[0] == again
    opened = open_matrix(stored)
    # The variant that changes nothing is the usual base.
    assert opened.matrix.base == 1
    assert not opened.matrix.is_complete
    # One that comes to its end counts from then on.
    complete = write_variant(tmp_path, "pro", PRO, changes)
    write_variant(tmp_path, "pro", not_all, changes)
    [stored] = stored_matrices(RunStore(tmp_path))
    assert stored.paths[0] == complete


def test_an_agent_without_runs_has_no_matrix(tmp_path):
    assert stored_matrices(RunStore(tmp_path)) == []
