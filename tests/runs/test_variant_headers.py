"""The variant and the matrix of a run in its log."""

import json

import pytest
from evaltui.runs.log_shape import log_schema

from evaltui.core.model.variants import Change, Variant
from evaltui.runs.history import open_run
from evaltui.runs.listing import read_row
from evaltui.runs.run_file import Ending, RunFile, begin_run
from evaltui.runs.store import RunStore
from tests.closed_schemas import closed

COOL = Variant("cool", (Change("model.root_agent", "gemini-2.5-pro"), Change("config.temperature", 0)))


def log_with(tmp_path, **header):
    log = begin_run(RunStore(tmp_path), {"sets": [], "files": {}, "event_version": 1, **header})
    log.close(Ending(Status.PASSED))
    return log.path


def test_a_log_gives_the_variant_and_the_matrix_back(tmp_path):
    path = log_with(tmp_path, agent_dir=str(tmp_path), matrix="m1", variant=COOL.to_json())
    for found in (RunFile(path).header, open_run(path).summary, read_row(path)):
        assert (found.matrix, found.variant) == ("m1", COOL)
    [header, *_] = path.read_text(encoding="utf-8").splitlines()
    assert [error.message for error in closed(log_schema()).iter_errors(json.loads(header))] == []


def test_a_log_without_a_variant_has_none(tmp_path):
    header = RunFile(log_with(tmp_path)).header
    assert (header.matrix, header.variant) == ("", None)


@pytest.mark.parametrize(
    "wrong", [{"variant": "cool"}, {"variant": {}}, {"variant": {"name": 1}}, {"matrix": 3}]
)
def test_what_is_no_variant_is_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="damaged"):
        RunFile(log_with(tmp_path, **wrong)).header


def test_changes_know_their_kind_and_what_they_are_of():
    model, field = COOL.changes
    assert (model.kind, model.name, field.kind, field.name) == (
        "model",
        "root_agent",
        "config",
        "temperature",
    )
    assert COOL.of_kind("config") == (field,)
