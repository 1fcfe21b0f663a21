"""Drafts of what would notice a change: each is proven, and the gaps of the samples have one."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
import waiting
from eval_data import make_case, make_turn, write_eval_set, write_test_config

from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call

SAMPLES = Path(__file__).parents[2] / "sample_agents"
# Calls the tools before the bar, and responds with one text after the other in the repeats of a case.
AGENT = """
from itertools import count

from evaltui.events import tool_call

REPEATS = {}


def root_agent(message, session):
    tools, _, texts = message.rpartition("|")
    for tool in tools.split():
        yield tool_call(tool, {})
    texts = texts.split(" / ")
    yield texts[next(REPEATS.setdefault(message, count())) % len(texts)]
"""
ANSWER = {"response_match_score": 0.8}


class Desk:
    """A workbench whose cases were run, and whose gaps were searched."""

    def __init__(self, folder):
        self.bench = Workbench(folder)

    async def open(self):
        await self.bench.open()
        await self.bench.outcomes.restore()
        await self.search()
        return self

    async def search(self):
        gaps = self.bench.gaps
        gaps.search([eval_set.path for eval_set in self.bench.sets.listed])
        await waiting.until(lambda: not gaps.is_running)
        assert gaps.report, gaps.problem

    @property
    def gaps(self):
        """The kind and the gap by kind, case, turn and digest."""
        return {
            (kind.kind, gap.eval_id, gap.turn, gap.digest): (kind, gap)
            for kind in self.bench.gaps.report.kinds
            for gap in kind.gaps
        }

    def gap(self, kind, eval_id):
        return next(both for key, both in self.gaps.items() if key[:2] == (kind, eval_id))

    async def drafting(self, kind, gap):
        return await self.bench.gap_drafts.of(kind, gap)

    async def drafts(self, kind, eval_id):
        """The drafts of a gap in words."""
        return [str(draft) for draft in (await self.drafting(*self.gap(kind, eval_id))).drafts]

    async def is_noticed_with(self, drafting, draft, key):
        """Whether a gap is noticed with a draft, and its case still passes; undone then."""
        assert drafting.apply(drafting.scoped(draft))
        await self.bench.outcomes.rescored([])
        status = self.bench.outcomes.get(drafting.case).result.status
        await self.search()
        skipped = {item.eval_id for item in self.bench.gaps.report.not_counted if item.turn is None}
        is_noticed = key not in self.gaps and drafting.case.eval_id not in skipped
        self.bench.editing.undo()
        return is_noticed and status == "PASSED"

    @property
    def block(self):
        """The `evaltui` block of the config, with unsaved changes."""
        (path,) = {self.bench.sets.config_path(eval_set.path) for eval_set in self.bench.sets.listed}
        return json.loads(self.bench.editing.document(path).text).get("evaltui", {})


@pytest.fixture
async def opened():
    desks = []

    async def run_and_open(folder, *words):
        await asyncio.to_thread(call, "run", folder, "--workers", "1", "--parallel", "1", *words)
        desks.append(Desk(folder))
        return await desks[-1].open()

    yield run_and_open
    for desk in desks:
        await desk.bench.close()


@pytest.fixture
def desk_of(tmp_path, opened):
    """Runs cases, `(message, expected calls, expected response)` by id, and opens them."""

    async def write_and_open(cases, criteria, *words):
        folder = tmp_path / "desk"
        folder.mkdir()
        (folder / "agent.py").write_text(AGENT)
        turns = {eval_id: make_turn(said, text, calls) for eval_id, (said, calls, text) in cases.items()}
        write_eval_set(folder, "orders", *(make_case(eval_id, turn) for eval_id, turn in turns.items()))
        write_test_config(folder, **criteria)
        return await opened(folder, *words)

    return write_and_open


@pytest.mark.parametrize("sample", ["calculator", "home_automation", "travel_desk"])
async def test_the_first_draft_of_each_gap_of_the_samples_notices_it(sample, tmp_path, opened):
    if sample == "travel_desk":
        pytest.importorskip("google.adk")
    desk = await opened(shutil.copytree(SAMPLES / sample, tmp_path / sample))
    gaps, missed = desk.gaps, []
    for key, (kind, gap) in gaps.items():
        drafting = await desk.drafting(kind, gap)
        draft = drafting.drafts[0]
        if draft.rubric or not await desk.is_noticed_with(drafting, draft, key):
            missed.append(key)
    print(f"{sample}: {len(gaps) - len(missed)} of {len(gaps)} noticed; missed: {missed}")
    assert gaps
    assert not missed


LATE = "Your order 7 for Ada Smith is at 5 kg of gold until 2026-09-01."
FIRST_DRAFTS = [
    ("another number", LATE, "numbers equal"),
    ("another date or time", LATE, "numbers equal"),
    ("another unit", LATE, "numbers equal"),
    ("another unit", "It is 19 °C.", "numbers equal"),
    ("another name", LATE, 'contains "Ada Smith"'),
    ("another name", f"{LATE} Ada Smith is here.", 'contains "for Ada Smith is"'),
    ("an invented promise", LATE, 'not contains "refund", "refunds", "refunded" and 9 more'),
    (
        "an invented promise",
        f"No refund: {LATE}",
        'not contains "refunds", "refunded", "reimburse" and 8 more',
    ),
    ("answer negated", "The lamp is off.", 'not contains "not", "never", "cannot" and 7 more'),
    ("answer negated", "The lamp is never off.", 'not contains "not", "cannot", "can\'t" and 6 more'),
    ("answer negated", "The lamp is not off, I fear.", 'contains "is not off"'),
    ("answer cut", "The lamp in the living room is off now.", 'contains "is off now"'),
    ("answer cut", "The lamp is set by Ada Smith to 5 kg.", "numbers equal"),
    ("answer emptied", "Done.", 'contains "Done"'),
    ("answer emptied", "Die Lampe ist aus und das Licht auch.", 'contains "das Licht auch"'),
    ("answer cut", "设定温度为十九摄氏度。", 'contains "摄氏度"'),
]


async def test_the_first_draft_is_the_most_general_one(desk_of):
    cases = {text: (text, [], text) for _, text, _ in FIRST_DRAFTS}
    desk = await desk_of(cases, {"response_match_score": 0.0})
    drafts = [(kind, text, (await desk.drafts(kind, text))[0]) for kind, text, _ in FIRST_DRAFTS]
    assert drafts == FIRST_DRAFTS


async def test_every_draft_notices_its_gap(desk_of):
    desk = await desk_of({"late": (f"find|{LATE}", ["find"], LATE)}, {"response_match_score": 0.3})
    tried = 0
    for key, (kind, gap) in desk.gaps.items():
        drafting = await desk.drafting(kind, gap)
        for draft in drafting.drafts:
            assert await desk.is_noticed_with(drafting, draft, key), (kind.kind, str(draft))
            tried += 1
    assert tried > 30


async def test_numbers_that_differ_from_the_expected_ones_are_checked_by_themselves(desk_of):
    cases = {"late": ("It costs 11 dollars and comes soon.", [], "It costs 12 dollars and comes soon.")}
    desk = await desk_of(cases, {"response_match_score": 0.5})
    drafts = await desk.drafts("another number", "late")
    assert drafts[:2] == ['contains "11 dollars"', 'contains "costs 11 dollars"']


async def test_a_draft_lets_the_other_passing_results_of_the_case_pass(desk_of):
    text, other, fails = (
        "It is in room 4 and it is off.",
        "It isn't in room 4 and it is off.",
        "It is not there.",
    )
    desk = await desk_of({"late": (f"{text} / {other} / {fails}", [], text)}, ANSWER, "--runs", "3")
    drafting = await desk.drafting(*desk.gap("answer negated", "late"))
    words = [str(draft) for draft in drafting.drafts]
    assert words == ['not contains "not", "never", "cannot" and 6 more']
    proof = await drafting.proof(drafting.scoped(drafting.drafts[0]))
    assert (proof.passing, proof.results) == (2, 2)


async def test_a_threshold_is_between_a_change_and_the_results_and_never_equal_texts(desk_of):
    lengths = {"short": 3, "long": 400, "longest": 4000}
    texts = {name: f"{' '.join(['word'] * length)} is off." for name, length in lengths.items()}
    desk = await desk_of({name: (text, [], text) for name, text in texts.items()}, ANSWER)
    last = {name: (await desk.drafts("answer negated", name))[-1] for name in texts}
    assert last == {
        "short": "response_match_score ≥ 0.91",
        "long": "response_match_score ≥ 0.999",
        "longest": 'contains "is off"',
    }


CALLS = "tool_trajectory_avg_score"


@pytest.mark.parametrize(
    ("expected", "made", "words"),
    [
        (["find"], "find", [f"{CALLS} ≥ 1.00"]),
        (["pay"], "find", [f"expect the recorded calls, {CALLS} ≥ 1.00"]),
    ],
)
async def test_calls_are_noticed_by_a_criterion_and_other_expected_calls(desk_of, expected, made, words):
    desk = await desk_of({"late": (f"{made}|It is off.", expected, "It is off.")}, ANSWER)
    kind, gap = desk.gap("call repeated", "late")
    drafting = await desk.drafting(kind, gap)
    assert [str(draft) for draft in drafting.drafts] == words
    key = next(key for key, (_, other) in desk.gaps.items() if other == gap)
    assert await desk.is_noticed_with(drafting, drafting.drafts[0], key)
    files = [path.name for path, _ in drafting.changes(drafting.scoped(drafting.drafts[0]))]
    assert files == ["test_config.json", *(["orders.evalset.json"] if "expect" in words[0] else [])]


async def test_a_case_is_searched_again_alone(desk_of):
    said = {name: f"The lamp {name} is set to {number} degrees." for number, name in enumerate("abc")}
    desk = await desk_of({name: (text, [], text) for name, text in said.items()}, ANSWER)
    gaps = desk.bench.gaps
    kind, gap = desk.gap("another number", "b")
    desk.bench.gap_drafts.toggle_meant_so(*desk.gap("answer negated", "b"))
    drafting = await desk.drafting(kind, gap)
    assert drafting.apply(drafting.scoped(drafting.drafts[0]))
    await gaps.search_case(gap)
    assert not gaps.stale
    alone = gaps.report
    await desk.search()

    def figures(report):
        kinds = [(kind.kind, kind.changes, kind.noticed, kind.gaps, kind.meant_so) for kind in report.kinds]
        return report.changes, report.noticed, report.meant_so, sorted(kinds, key=lambda kind: kind[0])

    assert figures(alone) == figures(gaps.report)
    assert gaps.report.meant_so == 1


async def test_another_agent_is_noticed_by_a_check_and_where_google_adk_decides_by_calls_or_a_judge(
    tmp_path, opened
):
    pytest.importorskip("google.adk")
    folder = shutil.copytree(SAMPLES / "travel_desk", tmp_path / "travel_desk")
    write_test_config(folder, **ANSWER)
    desk = await opened(folder)
    others = {key[1:3]: both for key, both in desk.gaps.items() if key[0] == "another agent"}
    transfer = await desk.drafting(*others["books_after_a_transfer", 2])
    assert [str(draft) for draft in transfer.drafts] == ["agent bookings", f"{CALLS} ≥ 1.00"]

    desk = await opened(folder, "--adk-verdicts")
    others = {key[1:3]: both for key, both in desk.gaps.items() if key[0] == "another agent"}
    judged = await desk.drafting(*others["finds_a_flight", 1])
    (draft,) = judged.drafts
    assert str(draft) == "The response comes from the agent travel_desk."
    assert not judged.apply(judged.scoped(draft))
    assert "add a rubric metric to the criteria first" in desk.bench.messages.notice.text

    criteria = {CALLS: 1.0, "rubric_based_final_response_quality_v1": 0.8}
    config = write_test_config(folder, **criteria)
    again = await Desk(folder).open()
    judged = await again.drafting(*again.gap("another agent", "finds_a_flight"))
    assert judged.apply(judged.scoped(judged.drafts[0]))
    await again.bench.editing.save_all()
    await again.bench.close()
    (rubric,) = json.loads(config.read_text())["criteria"]["rubric_based_final_response_quality_v1"][
        "rubrics"
    ]
    assert rubric["rubric_content"] == {"text_property": "The response comes from the agent travel_desk."}


async def test_coverage_counts_an_agent_that_an_accepted_check_names(tmp_path, opened):
    pytest.importorskip("google.adk")
    folder = shutil.copytree(SAMPLES / "travel_desk", tmp_path / "travel_desk")
    write_test_config(folder, **ANSWER)
    desk = await opened(folder)
    drafting = await desk.drafting(*desk.gap("another agent", "finds_a_flight"))
    assert drafting.apply(drafting.scoped(drafting.drafts[0]))
    if drafting.is_searched_alone:
        await desk.bench.gaps.search_case(drafting.gap)
    else:
        await desk.search()
    cells = {(cell.kind, cell.name): cell.noticed for cell in desk.bench.gaps.report.coverage}
    assert cells["agent", "travel_desk"] == 1


async def test_google_adk_reads_no_checks_so_that_only_thresholds_are_drafts(desk_of):
    desk = await desk_of({"late": (LATE, [], LATE)}, ANSWER, "--adk-verdicts")
    assert await desk.drafts("another number", "late") == ["response_match_score ≥ 0.94"]


ORDER, BYE = "Your order 7 for Ada Smith is on its way.", "It is not late, Ada Smith."


@pytest.fixture
async def desk(desk_of):
    return await desk_of({"late": (ORDER, [], ORDER), "bye": (BYE, [], BYE)}, ANSWER)


async def test_a_draft_is_shown_with_its_proof_and_its_effect_on_other_cases(desk):
    drafting = await desk.drafting(*desk.gap("answer negated", "late"))
    draft = drafting.drafts[0]
    proof = await drafting.proof(drafting.scoped(draft))
    assert (proof.is_noticed, proof.passing, proof.results) == (True, 1, 1)
    assert (proof.in_case, proof.in_set) == ((1, 1), (1, 2))
    effects = [effect async for effect in drafting.effects(drafting.scoped(draft, "set"))]
    assert [(change.case.eval_id, change.after) for change in effects[-1].changes] == [("bye", "FAILED")]
    ((path, lines),) = drafting.changes(drafting.scoped(draft))
    assert path.name == "test_config.json"
    assert any("not_contains" in line.text for line in lines)


async def test_a_threshold_is_a_draft_for_all_cases_of_the_config(desk):
    drafting = await desk.drafting(*desk.gap("another number", "late"))
    assert drafting.apply(drafting.scoped(drafting.drafts[-1]))
    await desk.search()
    assert not any(kind == "another number" for kind, *_ in desk.gaps)
    assert not desk.bench.gaps.report.not_counted


async def test_a_change_that_is_meant_so_is_counted_apart(desk):
    gaps, drafts = desk.bench.gaps, desk.bench.gap_drafts
    kind, gap = desk.gap("answer negated", "late")
    before = gaps.report.changes
    assert drafts.toggle_meant_so(kind, gap)
    assert not gaps.stale
    at_once = gaps.report.changes, gaps.report.meant_so
    names = {"set": "orders", "case": "late", "turn": 0, "kind": "answer negated"}
    assert desk.block["meant_so"] == [{**names, "digest": gap.digest}]
    await desk.search()
    assert at_once == (gaps.report.changes, gaps.report.meant_so) == (before - 1, 1)
    assert not desk.bench.outcomes.is_stale(gap.case)
    kind = next(kind for kind in gaps.report.kinds if kind.meant_so)
    assert drafts.toggle_meant_so(kind, kind.meant_so[0])
    assert "meant_so" not in desk.block
    assert (gaps.report.changes, gaps.report.meant_so) == (before, 0)


async def test_no_mark_is_made_by_the_names_of_before(desk):
    both, path = desk.gap("answer negated", "late"), desk.bench.sets.listed[0].path
    for change in (lambda editor: editor.rename_case(0, "soon"), lambda editor: editor.rename("sales")):
        desk.bench.editing.do("rename", path, change)
        assert not desk.bench.gap_drafts.toggle_meant_so(*both)
        assert desk.bench.messages.notice.text == "This change is no longer there; search again"
        desk.bench.editing.undo()
    assert desk.bench.gap_drafts.toggle_meant_so(*both)


async def test_changes_with_one_content_are_marked_together(desk_of):
    desk = await desk_of({"late": ("find find|It is off.", [], "It is off.")}, ANSWER)
    gaps = desk.bench.gaps
    assert desk.bench.gap_drafts.toggle_meant_so(*desk.gap("call dropped", "late"))
    at_once = gaps.report.changes, gaps.report.meant_so
    await desk.search()
    assert at_once == (gaps.report.changes, gaps.report.meant_so)


async def test_a_mark_follows_its_case_and_ends_when_the_response_is_another(desk, tmp_path, opened, capsys):
    kind, gap = desk.gap("answer negated", "late")
    desk.bench.gap_drafts.toggle_meant_so(kind, gap)
    path = desk.bench.sets.listed[0].path
    desk.bench.editing.do("rename late to soon", path, lambda editor: editor.rename_case(0, "soon"))
    assert desk.block["meant_so"][0]["case"] == "soon"
    await desk.bench.editing.save_all()
    folder, text = tmp_path / "desk", path.read_text()

    async def meant_so():
        await asyncio.to_thread(call, "run", folder)
        await asyncio.to_thread(call, "gaps", folder, "--report", f"json={folder / 'gaps.json'}")
        report = json.loads((folder / "gaps.json").read_text())
        lost = [
            (item["eval_id"], item["turn"]) for item in report["not_counted"] if "meant so" in item["reason"]
        ]
        return report["meant_so"], lost

    assert await meant_so() == (1, [])
    path.write_text(text.replace("order 7", "order 8"))
    assert await meant_so() == (0, [("soon", 1)])
    path.write_text(text.replace('"soon"', '"later"'))
    await asyncio.to_thread(call, "lint", folder)
    assert "no case 'soon' in orders" in capsys.readouterr().out
