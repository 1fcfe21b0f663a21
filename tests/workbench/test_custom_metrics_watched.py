"""Functions that score: what follows when their file is saved, or their threshold is changed."""

from __future__ import annotations

import json
import textwrap

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.config import ConfigEditor
from evaltui.workbench.files.saves import ReactionStep

AGENT = """
    def root_agent(message, session):
        return "hello you"
"""
# The same, known to ask no model.
SCRIPTED = """
    from evaltui import Agent, Rule, ScriptedModel

    root_agent = Agent(name="greeter", model=ScriptedModel([Rule(user=".", reply="hello you")]))
"""
METRICS = """
    def words(actual, expected, criterion):
        return len(actual.final_response.parts[0].text.split())
"""


@pytest.fixture
def greeter(write_agent, write_set):
    folder = write_agent(AGENT, metrics=METRICS)
    write_set(folder, good=("you", "hello you"), other=("me", "hello you"))
    words = {"threshold": 2, "function": "my_agent.metrics.words"}
    (folder / "test_config.json").write_text(json.dumps({"evaltui": {"criteria": {"words": words}}}))
    return folder


def scores(workbench):
    found = {}
    for key in workbench.sets.every_case():
        (metric,) = (one for one in workbench.outcomes.get(key).result.metrics if one.name == "words")
        found[key.eval_id] = (str(metric.status), metric.score)
    return found


def done(workbench, changed):
    last = workbench.watch.last
    return (
        last
        and last.step is ReactionStep.DONE
        and last.changed == (changed,)
        and not workbench.runs.is_running
    )


def reason(workbench, key):
    return workbench.outcomes.get(key).result.metrics[0].reason


async def test_a_saved_metric_scores_anew(greeter, open_workbench, until):
    (greeter / "agent.py").write_text(textwrap.dedent(SCRIPTED))
    workbench = await open_workbench(greeter)
    workbench.watch.start()
    await workbench.watch.ready()
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)
    assert scores(workbench) == {"good": ("PASSED", 2.0), "other": ("PASSED", 2.0)}
    text = (greeter / "metrics.py").read_text()
    (greeter / "metrics.py").write_text(text.replace("split())", "split())-1"))
    await until(lambda: done(workbench, "metrics.py"))
    assert scores(workbench) == {"good": ("FAILED", 1.0), "other": ("FAILED", 1.0)}


async def test_a_metric_that_lies_beside_the_agent_is_watched_once_it_has_scored(
    greeter, open_workbench, until
):
    outside = greeter.parent / "shared.py"
    outside.write_text(textwrap.dedent(METRICS))
    config = greeter / "test_config.json"
    config.write_text(config.read_text().replace("my_agent.metrics", "shared"))
    workbench = await open_workbench(greeter)
    workbench.watch.start()
    await workbench.watch.ready()
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)
    # What is saved here has it looked at for the first time, too.
    (greeter / "notes.md").write_text("to do")
    await until(lambda: done(workbench, "notes.md"))
    outside.write_text(outside.read_text().replace("split())", "split())-1"))
    await until(lambda: done(workbench, "../shared.py"))
    assert scores(workbench)["good"] == ("FAILED", 1.0)


async def test_another_threshold_counts_at_once(greeter, open_workbench, until):
    workbench = await open_workbench(greeter)
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)
    path = greeter / "greetings.evalset.json"
    workbench.editing.do("stricter", path, lambda one: ConfigEditor(one.config).set_threshold("words", 3))
    good = CaseId("greetings.evalset.json", "good")
    await until(lambda: workbench.outcomes.status(good) == "FAILED")
    assert scores(workbench)["good"] == ("FAILED", 2.0)
    assert reason(workbench, good) == "failed in turn 1"
    assert workbench.runs.current.number == 1


async def test_a_result_of_what_has_changed_since_says_so(greeter, open_workbench, until):
    workbench = await open_workbench(greeter)
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)
    path = greeter / "greetings.evalset.json"
    good, other = CaseId(path.name, "good"), CaseId(path.name, "other")
    workbench.editing.do("expect else", path, lambda one: one.case(0).turn(0).answer.set_text("welcome"))
    await until(lambda: reason(workbench, good))
    assert reason(workbench, good) == "stale score; run again"
    assert scores(workbench)["good"] == ("PASSED", 2.0)
    assert reason(workbench, other) == ""
    workbench.editing.undo()
    await until(lambda: not reason(workbench, good))


@pytest.mark.parametrize(
    ("file", "old", "new", "reasons"),
    [
        ("test_config.json", '"threshold": 2', '"threshold": 2, "most": 9', ("config",)),
        ("greetings.evalset.json", '"hello you"', '"bye"', ("case",)),
    ],
)
async def test_a_verdict_that_only_a_function_gives_is_stale_for_what_changed(
    greeter, open_workbench, until, file, old, new, reasons
):
    workbench = await open_workbench(greeter)
    workbench.runs.run_all()
    await until(lambda: not workbench.runs.is_running)
    (greeter / file).write_text((greeter / file).read_text().replace(old, new))
    await workbench.open()
    await workbench.outcomes.rescored([])
    for case in workbench.sets.every_case():
        assert workbench.outcomes.freshness(case).reasons == reasons
    await workbench.close()
    workbench = await open_workbench(greeter)
    await workbench.outcomes.restore()
    await workbench.outcomes.rescored([])
    for case in workbench.sets.every_case():
        assert workbench.outcomes.freshness(case).reasons == reasons
