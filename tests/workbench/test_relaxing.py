"""A difference is relaxed from the result: proposals, what they would do, one step that can be undone."""

import asyncio
import json
from random import Random
from types import SimpleNamespace

import pytest
from eval_data import make_case, make_set, make_turn

from evaltui.core.model.case_id import CaseId
from evaltui.documents.edits import EditError
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.result.relaxing import Relaxing
from evaltui.workbench.result.rescoring import actual_of, score_again

# Looks orders up as the message says, and keeps count of how often it was asked; waits while there is a file.
AGENT = """
    import json
    import time
    from pathlib import Path

    from evaltui import events

    def root_agent(message, session):
        while Path(__file__).with_name("wait").exists():
            time.sleep(0.01)
        with (Path(__file__).parent / "asked.txt").open("a") as file:
            file.write("x")
        for args in json.loads(message):
            yield events.tool_call("find_orders", args)
            yield events.tool_result("find_orders", {"hits": 1})
        yield "done"
"""
CONFIG = '{\n  "criteria": {"tool_trajectory_avg_score": 1.0}\n}\n'
EXPECTED = {"customer_id": "C-1", "query": "late", "as_of": "2026-01-01"}
MADE = {"customer_id": "C-1", "query": "overdue", "as_of": "2026-03-09"}


def case(eval_id, expected, made):
    turn = make_turn(json.dumps(made), "done", [{"name": "find_orders", "args": args} for args in expected])
    return make_case(eval_id, turn)


@pytest.fixture
async def orders(write_agent, until, open_workbench):
    """A set that was run: three cases differ in their arguments, one also in the customer, one not at all."""
    folder = write_agent(AGENT)
    cases = [
        case("late", [EXPECTED], [MADE]),
        case("query_only", [EXPECTED], [{**EXPECTED, "query": "open"}]),
        case("both", [EXPECTED], [{**MADE, "query": "open"}]),
        case("stranger", [EXPECTED], [{**MADE, "customer_id": "C-2"}]),
        case("fine", [EXPECTED], [EXPECTED]),
    ]
    path = folder / "orders.evalset.json"
    path.write_text(json.dumps(make_set("orders", *cases)))
    config = folder / "test_config.json"
    config.write_text(CONFIG)
    workbench = await open_workbench(folder)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    return SimpleNamespace(
        workbench=workbench,
        path=path,
        config=config,
        asked=folder / "asked.txt",
        key=CaseId(path.name, "late"),
    )


def relaxing(orders, path="query", eval_id="late"):
    return relaxing_of(orders, CaseId(orders.path.name, eval_id), DifferenceAt("argument", 0, 0, path))


def relaxing_of(orders, key, difference):
    bench = orders.workbench
    return Relaxing(bench.agent, bench.editing, key, difference)


def statuses(orders):
    return {
        key.eval_id: scored.result.status
        for key, scored in orders.workbench.outcomes.results.of(orders.path.name)
    }


async def effects(made, rule):
    return [effect async for effect in made.effects(rule)]


async def test_the_first_scenario(orders, until):
    """Volatile arguments: ignored, and by their form; no model is asked, and all else still counts."""
    before = CaseId(orders.path.name, "late")
    (row,) = orders.workbench.outcomes.get(before).result.turns[0].calls
    assert [arg.path for arg in row.args if arg.op != "same"] == ["query", "as_of"]
    asked = orders.asked.read_text()

    query = relaxing(orders)
    assert query.apply(query.rule("query", "ignore", "all"))
    as_of = relaxing(orders, "as_of")
    regex = next(one.match for one in as_of.proposals("as_of") if "regex" in one.match)
    assert regex == {"regex": r"\d{4}-\d\d-\d\d"}
    assert as_of.apply(as_of.rule("as_of", regex, "all"))
    passed = dict.fromkeys(("late", "query_only", "both", "fine"), "PASSED")
    await until(lambda: statuses(orders) == {**passed, "stranger": "FAILED"}, lambda: f"{statuses(orders)}")

    assert orders.asked.read_text() == asked
    (row,) = orders.workbench.outcomes.get(before).result.turns[0].calls
    assert [(arg.path, arg.rule) for arg in row.args if arg.rule] == [
        ("query", "ignore"),
        ("as_of", r"regex \d{4}-\d\d-\d\d"),
    ]


async def test_each_rule_is_one_step_that_can_be_undone(orders, until):
    made = relaxing(orders)
    assert made.apply(made.rule("query", "ignore", "all"))
    draft = orders.workbench.editing.open_file(orders.config)
    assert draft.document.value["evaltui"]["rules"] == [
        {"tool": "find_orders", "arg": "query", "match": "ignore"}
    ]
    assert orders.workbench.editing.undo_label == "relax query of find_orders"
    await until(lambda: statuses(orders)["query_only"] == "PASSED")
    orders.workbench.editing.undo()
    assert draft.document.text == CONFIG
    await until(lambda: statuses(orders)["query_only"] == "FAILED")


async def test_a_rule_for_the_set_concerns_the_cases_of_the_set_alone(orders):
    made = relaxing(orders)
    rule = made.rule("query", "ignore", "set")
    assert rule == {"tool": "find_orders", "arg": "query", "match": "ignore", "set": "orders"}
    last = (await effects(made, rule))[-1]
    assert last.cases == 3
    elsewhere = (await effects(made, rule | {"set": "returns"}))[-1]
    assert (elsewhere.cases, elsewhere.changes) == (0, ())


async def test_a_rule_made_in_an_earlier_run_names_the_set_as_it_is_now(orders):
    bench = orders.workbench
    bench.editing.do("rename", orders.path, lambda eval_set: eval_set.rename("sales"))
    await bench.outcomes.rescored([])
    assert await bench.outcomes.open_run(bench.agent.store.files()[0], "run 1")
    made = relaxing(orders, eval_id="query_only")
    rule = made.rule("query", "ignore", "set")
    assert rule["set"] == "sales"
    *_, effect = await effects(made, rule)
    assert (effect.result.status, effect.cases) == ("PASSED", 3)
    made.apply(rule)
    assert made.passing[1]["set"] == "sales"
    bench.outcomes.leave_previous_run()
    await bench.outcomes.rescored([])
    assert statuses(orders)["query_only"] == "PASSED"


async def test_what_a_rule_would_do_is_known_before_it_is_written(orders):
    made = relaxing(orders, eval_id="query_only")
    first, *_, last = await effects(made, made.rule("query", "ignore", "all"))
    assert first.result.status == "PASSED"
    assert first.changes == ()
    # The case where all is equal already need not be looked at.
    assert (last.seen, last.cases, last.unknown, last.is_complete) == (3, 3, 0, True)
    assert last.changes == ()

    made = relaxing(orders)
    last = (await effects(made, made.rule("*", "ignore", "all")))[-1]
    assert last.result.status == "PASSED"
    assert {change.case.eval_id: (change.before, change.after) for change in last.changes} == {
        "query_only": ("FAILED", "PASSED"),
        "both": ("FAILED", "PASSED"),
        "stranger": ("FAILED", "PASSED"),
    }
    assert statuses(orders)["late"] == "FAILED"
    assert orders.workbench.editing.open_file(orders.config) is None or not orders.workbench.editing.unsaved()


async def test_a_rule_for_this_case_leaves_the_others_alone(orders, until):
    made = relaxing(orders, eval_id="query_only")
    rule = made.rule("query", {"any_of": ["late", "open"]})
    assert (rule["set"], rule["case"]) == ("orders", "query_only")
    (only,) = await effects(made, rule)
    assert (only.result.status, only.cases) == ("PASSED", 0)
    assert made.apply(rule)
    await until(lambda: statuses(orders)["query_only"] == "PASSED")
    assert statuses(orders)["both"] == "FAILED"


async def test_what_stays_is_told(orders):
    made = relaxing(orders)
    effect = (await effects(made, made.rule("query", "ignore")))[0]
    assert effect.result.status == "FAILED"
    (row,) = effect.result.turns[0].calls
    assert [(arg.path, arg.op) for arg in row.args if arg.op != "same"] == [("as_of", "changed")]


async def test_places_and_what_can_be_said_of_them(orders):
    made = relaxing(orders)
    assert made.tool == "find_orders"
    assert made.arg_paths == ["query", "*"]
    assert [one.words for one in made.proposals("query")] == [
        'one of "late", "overdue"',
        r"regex \w+",
        "type",
        "ignore",
    ]
    assert [one.match for one in made.proposals("*")][-2:] == ["type", "ignore"]


async def test_the_rule_that_lets_it_pass_can_be_taken_out(orders, until):
    made = relaxing(orders, eval_id="query_only")
    assert made.passing is None
    assert not made.remove()
    rule = made.rule("query", "ignore", "all")
    made.apply(rule)
    await until(lambda: statuses(orders)["query_only"] == "PASSED")
    again = relaxing(orders, eval_id="query_only")
    assert again.passing == (0, rule)
    # Another kind for the same argument takes its place.
    again.apply(again.rule("query", "type", "all"))
    data = orders.workbench.editing.data(orders.config)
    assert [one["match"] for one in data["evaltui"]["rules"]] == ["type"]
    assert relaxing(orders, eval_id="query_only").remove()
    assert orders.workbench.editing.undo_label == "check query of find_orders again"
    assert "rules" not in orders.workbench.editing.data(orders.config)["evaltui"]


async def test_without_a_config_the_first_rule_makes_one(orders):
    orders.config.unlink()
    made = relaxing(orders)
    assert made.apply(made.rule("query", "ignore", "all"))
    data = orders.workbench.editing.data(orders.config)
    assert data["criteria"] == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert len(data["evaltui"]["rules"]) == 1


async def test_only_arguments_that_differ_can_be_relaxed(orders):
    for difference in (
        DifferenceAt("argument", 0, 0, "customer_id"),
        DifferenceAt("argument", 0, 7, "query"),
        DifferenceAt("argument", 3, 0, "query"),
        DifferenceAt("call", 0, 0, None),
        DifferenceAt("state", None, None, "query"),
    ):
        with pytest.raises(EditError, match="Only arguments can be relaxed"):
            relaxing_of(orders, orders.key, difference)
    with pytest.raises(EditError):
        relaxing_of(orders, CaseId(orders.path.name, "gone"), DifferenceAt("argument", 0, 0, "query"))


async def test_a_config_with_errors_is_not_written_to_blindly(orders):
    orders.config.write_text('{"criteria": {"tool_trajectory_avg_score": "high"}}')
    made = relaxing(orders)
    with pytest.raises(EditError, match=r"test_config\.json has errors: criteria"):
        await effects(made, made.rule("query", "ignore", "all"))
    with pytest.raises(EditError, match="not a rule"):
        await effects(made, made.rule("query", {"regex": "("}, "all"))


async def test_a_case_whose_log_is_gone_is_unknown(orders):
    made = relaxing(orders)
    orders.workbench.runs.current.log.unlink()
    last = (await effects(made, made.rule("query", "ignore", "all")))[-1]
    assert last.result is None
    assert (last.unknown, last.is_complete) == (4, True)


RULES = [("query", "ignore"), ("as_of", "ignore"), ("*", "ignore"), ("query", {"any_of": ["late", "open"]})]


async def test_edits_during_scoring_end_with_every_case_scored_by_the_last_config(orders, until):
    """Edits, undos and redos in quick succession, each amid the scoring that the last one began."""
    random, bench = Random(15), orders.workbench

    def config():
        return bench.sets.last_opened(orders.path).config.config

    def results():
        return bench.outcomes.results.of(orders.path.name)

    for _ in range(30):
        for _ in range(random.randint(2, 5)):
            match random.choice(("relax", "relax", "undo", "redo")):
                case "undo":
                    bench.editing.undo()
                case "redo":
                    bench.editing.redo()
                case _:
                    made = relaxing(orders)
                    made.apply(made.rule(*random.choice(RULES), random.choice(("all", "set", "case"))))
            for _ in range(random.randrange(40)):
                await asyncio.sleep(0)
        await until(lambda: all(scored.config == config() for _, scored in results()))
        for key, scored in results():
            actual = actual_of(bench.outcomes.traces.events_of(key))
            fresh = await score_again(scored, actual, scored.stored, config(), bench.agent.secrets)
            assert fresh.result == scored.result


async def test_an_edit_during_a_run_that_is_cancelled_concerns_the_earlier_results(orders, until):
    (orders.path.parent / "wait").touch()
    runs = orders.workbench.runs
    runs.run_all()
    await until(lambda: runs.current.running)
    made = relaxing(orders)
    assert made.apply(made.rule("*", "ignore", "all"))
    runs.cancel()
    await until(lambda: runs.current.over)
    await until(lambda: set(statuses(orders).values()) == {"PASSED"})
