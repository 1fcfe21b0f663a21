"""The variant and the matrix of a run in its file."""

from evaltui.core.model.outcome import Status
from evaltui.core.model.variants import Change, Variant
from evaltui.runs.history import open_run
from evaltui.runs.listing import read_row
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore

COOL = Variant("cool", (Change("model.root_agent", "gemini-2.5-pro"), Change("config.temperature", 0)))


def run_with(tmp_path, **header):
    writer = begin_run(RunStore(tmp_path), RunHeader(**header))
    writer.close(Ending(Status.PASSED))
    return writer.path


def test_a_run_gives_the_variant_and_the_matrix_back(tmp_path):
    path = run_with(tmp_path, agent_dir=str(tmp_path), matrix="m1", variant=COOL)
    for found in (RunFile(path).header, open_run(path).summary, read_row(path)):
        assert (found.matrix, found.variant) == ("m1", COOL)
