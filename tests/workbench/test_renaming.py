"""A tool, an argument or an agent renamed in the workbench: what, where, undone, refused, merged."""

import json

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config

from evaltui.core.model.renaming import Renaming
from evaltui.documents.editing.set import SetEditor
from evaltui.workbench.case.fields import RowSource
from evaltui.workbench.case.selected_case import case_rows
from evaltui.workbench.result.accepting import propose_renaming, rename_everywhere
from evaltui.workbench.state import Selection

FIND = {"name": "find", "args": {"what": "lamp"}}
TRANSFER = {"name": "transfer_to_agent", "args": {"agent_name": "billing"}}
RESPONSE = {"name": "find", "response": {"price": 3}}
SAID = [["desk", [{"text": "One moment."}]]]
ASKED = {"kind": "model", "case": "a", "repeat": 0, "turn": 0, "model": "m", "key": "k", "contents": "c"}
CALLED = {**ASKED, "responses": [{"parts": [{"function_call": FIND}]}]}


@pytest.fixture
def folder(write_agent):
    folder = write_agent("def root_agent(message, session):\n    return message\n", name="desk")
    data = {
        "tool_uses": [FIND, TRANSFER],
        "tool_responses": [RESPONSE],
        "intermediate_responses": SAID,
    }
    write_eval_set(folder, "orders", make_case("a", make_turn("hi", intermediate_data=data)))
    rules = [{"tool": "find", "arg": "what", "match": "ignore"}]
    write_test_config(folder, criteria={"response_match_score": 1}, evaltui={"rules": rules})
    (folder / "recordings").mkdir()
    (folder / "recordings" / "orders.jsonl").write_text(json.dumps(CALLED) + "\n")
    return folder


def texts(folder):
    return [path.read_text() for path in sorted([*folder.glob("*.json"), *folder.glob("recordings/*")])]


@pytest.fixture
async def workbench(folder, open_workbench):
    workbench = await open_workbench(folder)
    workbench.navigation.select(Selection("orders.evalset.json", "a"))
    return workbench


async def renamed(workbench, *words):
    proposal = await propose_renaming(workbench.editing, Renaming.of(*words))
    assert proposal.problem == ""
    return proposal, rename_everywhere(workbench.editing, proposal)


async def test_each_line_with_a_name_says_what_is_renamed(folder, workbench):
    editor = SetEditor(workbench.editing.data(folder / "orders.evalset.json")).case(0)
    names = [row.named for row in case_rows(RowSource(editor)) if row.named]
    assert names == [
        ("tool", "find"),
        ("argument", "find.what"),
        ("tool", "transfer_to_agent"),
        ("agent", "billing"),
        ("tool", "find"),
        ("agent", "desk"),
    ]


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("tool", "find", "search"), "5 places in 3 files"),
        (("argument", "find.what", "goods"), "4 places in 3 files"),
        (("agent", "billing", "accounts"), "1 place in 1 file"),
    ],
)
async def test_all_files_are_one_step_that_is_saved_and_undone_at_once(words, counts, folder, workbench):
    before = texts(folder)
    proposal, is_done = await renamed(workbench, *words)
    assert is_done
    assert proposal.files.counts == counts
    assert workbench.editing.undo_label == f"rename {proposal.renaming.words}"
    assert texts(folder) == before
    assert await workbench.editing.save_all()
    after = texts(folder)
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    assert counts.endswith(f"in {changed} file{'s' * (changed > 1)}")
    workbench.editing.undo()
    assert await workbench.editing.save_all()
    assert texts(folder) == before
    workbench.editing.redo()
    assert await workbench.editing.save_all()
    assert texts(folder) == after


async def test_a_taken_name_is_a_problem_of_the_proposal(folder, workbench):
    call = {"name": "find", "args": {"what": 1, "goods": 2}}
    path = write_eval_set(folder, "more", make_case("b", make_turn("hi", calls=[call])))
    await workbench.reload()
    proposal = await propose_renaming(workbench.editing, Renaming.of("argument", "find.what", "goods"))
    where = "eval_cases[0].conversation[0].intermediate_data.tool_uses[0].args.what"
    assert proposal.problem == f"{path}:1: {where}: 'goods' is there already, beside 'what'"
    proposal = await propose_renaming(workbench.editing, Renaming.of("tool", "nothing", "x"))
    assert proposal.problem == "No tool nothing in the eval sets"
    assert workbench.editing.unsaved() == []


async def test_what_changed_since_the_proposal_is_shown_anew(workbench):
    proposal = await propose_renaming(workbench.editing, Renaming.of("tool", "find", "search"))
    await renamed(workbench, "agent", "billing", "accounts")
    assert not rename_everywhere(workbench.editing, proposal)
    assert workbench.messages.notice.text == "File changed on disk; review the new diff"


async def test_a_recording_that_a_run_has_changed_meanwhile_is_a_conflict(folder, workbench):
    await renamed(workbench, "tool", "find", "search")
    recording = folder / "recordings" / "orders.jsonl"
    newer = json.dumps({**CALLED, "key": "other"}) + "\n"
    recording.write_text(newer)
    assert not await workbench.editing.save_all()
    (conflict,) = workbench.editing.conflicts
    assert conflict.path == recording
    assert conflict.theirs == newer
    assert '"renamed"' in conflict.mine


async def test_a_saved_recording_follows_later_runs(folder, workbench):
    await renamed(workbench, "tool", "find", "search")
    assert await workbench.editing.save_all()
    recording = folder / "recordings" / "orders.jsonl"
    newer = recording.read_text() + json.dumps({**ASKED, "repeat": 1, "responses": []}) + "\n"
    recording.write_text(newer)
    await workbench.editing.merge_outside_changes()
    assert workbench.editing.conflicts == []
    await renamed(workbench, "tool", "search", "find")
    assert await workbench.editing.save_all()
    assert recording.read_text() == newer.replace('"search"', '"find"').partition("\n")[2]
