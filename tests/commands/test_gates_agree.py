"""Each place that compares two runs finds the same regressions, and each gate has the same exit code."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from command_line import call
from fake_runs import NoHost, run_without_processes
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui import evaluate_sync
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.outcome import Status
from evaltui.runs.store import RunStore
from evaltui.workbench.workbench import Workbench
from tests.eval_data import make_case, make_set, make_turn, write_test_config

# Two sets have the same id.
SETS = {"lights.evalset.json": "lights", "evals/lights.evalset.json": "lights", "home.evalset.json": "home"}
IDS = ("a", "A", "night::x", "ünï")
# Each example is a dozen commands.
FEWER = settings(max_examples=settings.default.max_examples // 2)
Outcomes = dict[CaseId, str]
"""The repeats of each case, a letter each: passed, failed, error."""


@dataclass
class Pair:
    """Two runs by the outcomes of their cases."""

    runs: int
    pass_if: Literal["all", "majority"] | float
    base: Outcomes
    now: Outcomes
    is_judged: bool
    """Whether each metric of the sets in `evals` can run here."""

    @property
    def options(self) -> tuple[str, ...]:
        return "--runs", str(self.runs), "--pass-if", str(self.pass_if)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    repeats = draw(st.sampled_from([1, 1, 2, 3, 5]))
    pass_if = draw(st.sampled_from(["all", "majority", 0.5]))
    letters = st.sampled_from(["p", "ppf", "pfe", "f"]).flatmap(
        lambda some: st.text(some, min_size=repeats, max_size=repeats)
    )
    ids = st.builds(CaseId, st.sampled_from([*SETS]), st.sampled_from(IDS))
    cases = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    base = {case: draw(letters) for case in cases if draw(st.integers(0, 9))}
    now = {case: base.get(case) if draw(st.booleans()) else draw(letters) for case in cases}
    some = {case: outcome or draw(letters) for case, outcome in now.items() if draw(st.integers(0, 9))}
    first = {cases[0]: draw(letters)}
    return Pair(repeats, pass_if, base or first, some or first, draw(st.booleans()))


class Desk:
    """An agent whose cases end as they are told to; commands are run without processes."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self.folder, self.pair = folder, pair
        self.outcomes: Outcomes = {}
        (folder / "agent.py").write_text("root_agent = lambda message: message\n")
        write_test_config(folder, response_match_score=0.9)
        (folder / "evals").mkdir()
        more = {} if pair.is_judged else {"safety_v1": 0.5}
        write_test_config(folder / "evals", response_match_score=0.9, **more)

    def act(self, case: EvalCase, repeat: int) -> list[Invocation]:
        (turn,) = case.conversation or []
        path, _, eval_id = (turn.user_content.parts or [])[0].text.partition(" ")
        letter = self.outcomes[CaseId(path, eval_id)][repeat]
        if letter == "e":
            raise RuntimeError("no boiler")
        answer = {"role": "model", "parts": [{"text": "right" if letter == "p" else "wrong"}]}
        said = turn.model_dump(include={"user_content"})
        return [Invocation.model_validate({**said, "final_response": answer})]

    def use(self, outcomes: Outcomes) -> None:
        """Writes the sets with these cases, which end so from now on."""
        self.outcomes = outcomes
        for path, set_id in SETS.items():
            cases = [
                make_case(case.eval_id, make_turn(f"{path} {case.eval_id}", "right"))
                for case in outcomes
                if case.path == path
            ]
            (self.folder / path).unlink(missing_ok=True)
            if cases:
                (self.folder / path).write_text(json.dumps(make_set(set_id, *cases)))

    def judges(self, case: CaseId) -> bool:
        """Whether each metric of a case can run here."""
        return self.pair.is_judged or not case.path.startswith("evals")

    def run(self, *words: object) -> Any:
        return told(self.folder, "run", self.folder, *self.pair.options, *words)

    @property
    def last(self) -> Path:
        return RunStore(self.folder).files()[-1]


def reported(folder: Path, *words: object) -> Any:
    """The exit code of a command, and its JSON report; None without one."""
    file = folder / "told.out"
    file.unlink(missing_ok=True)
    code = call(*words, "--report", f"json={file}")
    return code, json.loads(file.read_text()) if file.exists() else None


def told(folder: Path, *words: object) -> Any:
    """The exit code of a command, and the changes that its report has; None without a report."""
    code, document = reported(folder, *words)
    if document is None:
        return code, None
    comparison = document.get("comparison", document) or {}
    return code, {
        (case["path"], case["eval_id"]): (case["change"], case["regression"], case["p"])
        for case in comparison.get("cases", ())
        if "change" in case
    }


@contextmanager
def desk(folder: Path, pair: Pair) -> Iterator[Desk]:
    made = Desk(folder, pair)
    with pytest.MonkeyPatch.context() as patch:
        run_without_processes(patch, made.act)
        for module in ("commands.matrix", "testing.agent_run"):
            patch.setattr(f"evaltui.{module}.start_host", lambda settings, *_, **__: NoHost(settings))
        patch.setattr("evaltui.commands.matrix.require_variant", as_it_is)
        patch.setattr("evaltui.runs.execution.require_variant", as_it_is)
        yield made


async def as_it_is(host: object) -> None:
    """A host that is none fits each variant."""


async def shown(folder: Path) -> dict[CaseId, str]:
    """The statuses in the list of cases of a workbench."""
    workbench = Workbench(folder)
    try:
        await workbench.open()
        await workbench.outcomes.restore()
        statuses = {case: str(workbench.outcomes.status(case)) for case in workbench.sets.every_case()}
        assert +workbench.outcomes.counts() == Counter(statuses.values())
        return statuses
    finally:
        await workbench.close()


def evaluated(folder: Path, pair: Pair) -> dict[CaseId, str]:
    """The statuses of a run from Python, of an agent that is an object."""
    letters = {f"{case.path} {case.eval_id}": iter(letters) for case, letters in pair.now.items()}

    def answer(message: str, session: object) -> str:
        return {"p": "right", "f": "wrong"}[next(letters[message])]

    result = evaluate_sync(answer, home=folder, runs=pair.runs, pass_if=pair.pass_if)
    verdicts = {case.verdict for case in result.cases}
    assert result.passed == (verdicts == {Status.PASSED})
    return {case.id: str(case.status) for case in result.cases}


def statuses_in(report):
    return {CaseId(case["path"], case["eval_id"]): case["status"] for case in report["cases"]}


@given(pairs())
@FEWER
def test_results_of_a_run_agree_in_reports_python_workbench_and_files_for_google_adk(tmp_path_factory, pair):
    folder = tmp_path_factory.mktemp("agent")
    with desk(folder, pair) as agent:
        agent.use(pair.now)
        _, report = reported(folder, "run", folder, *pair.options)
        statuses = statuses_in(report)
        assert asyncio.run(shown(folder)) == statuses
        assert evaluated(folder, pair) == statuses
        _, report = reported(folder, "merge", agent.last, "-o", folder / "merged.sqlite")
        assert statuses_in(report) == statuses
        of_adk = Counter[tuple[str, str, str]]()
        for file in folder.glob(".adk/eval_history/*"):
            _, document = reported(folder, "report", folder, file)
            of_adk.update(
                (case["eval_set_id"], case["eval_id"], case["status"]) for case in document["cases"]
            )
        # They do not have the policy.
        if pair.pass_if == "all":
            assert of_adk == Counter(
                (SETS[case.path], case.eval_id, status) for case, status in statuses.items()
            )


@pytest.mark.timeout(600)
@given(pairs())
@FEWER
def test_each_comparison_and_gate_agrees(tmp_path_factory, pair):
    folder = tmp_path_factory.mktemp("agent")
    with desk(folder, pair) as agent:
        agent.use(pair.base)
        agent.run()
        base = agent.last
        agent.use(pair.now)
        gate = ("--baseline", base.stem, "--fail-on-regression")
        code, changes = agent.run(*gate)
        is_refused = code == 2
        if is_refused:
            # No number of failures could be a regression.
            agent.run()
        log = agent.last
        of_file, changes_in_file = told(folder, "compare", folder, base, log, "--fail-on-regression")
        regressions = {CaseId(*case) for case, (_, regression, _) in changes_in_file.items() if regression}
        if is_refused:
            # Then a case without a verdict alone is one.
            without = {case for case, letters in pair.now.items() if "e" in letters or not agent.judges(case)}
            assert regressions <= without
        else:
            assert (of_file, changes_in_file) == (code, changes)
        assert told(folder, "report", folder, log, "--baseline", base.stem) == (0, changes_in_file)
        merged = folder / "merged.sqlite"
        assert told(folder, "merge", folder, log, "-o", merged, *gate) == (of_file, changes_in_file)
        # Parts of it are gated, too.
        parts = [agent.run("--shard", f"{number}/2", *gate) for number in (1, 2)]
        assert all((part == 2) == is_refused for part, _ in parts)
        if not is_refused:
            logs = RunStore(folder).files()[-2:]
            assert told(folder, "merge", folder, *logs, *gate) == (of_file, changes_in_file)
        variants = ("--variant", "base", "--variant", "other:env.OTHER=1")
        file = folder / "matrix.json"
        assert call("run", folder, *pair.options, *variants, *gate, "--report", f"json={file}") == code
        if not is_refused:
            numbers = [variant["regressions"] for variant in json.loads(file.read_text())["variants"]]
            # Where nothing is compared, there is no number.
            assert [number or 0 for number in numbers] == [len(regressions)] * 2


AGENT = """
import json
from pathlib import Path

OUTCOMES = json.loads(Path(__file__).with_name("outcomes.txt").read_text())

def root_agent(message, session):
    # All of its processes count together.
    with (Path(__file__).parents[1] / message.encode().hex()).open("ab") as file:
        file.write(b".")
        number = file.tell() - 1
    letter = OUTCOMES[message][number % len(OUTCOMES[message])]
    return {"p": "right", "f": "wrong"}[letter]
"""


@pytest.mark.thorough
@pytest.mark.timeout(900)
@given(pairs())
@settings(max_examples=4)
def test_pytest_and_its_workers_have_the_gate_of_a_run(tmp_path_factory, pair):
    folder = tmp_path_factory.mktemp("project") / "desk"
    folder.mkdir()
    (folder.parent / "pytest.ini").write_text("[pytest]\n")
    agent = Desk(folder, pair)
    (folder / "agent.py").write_text(AGENT)

    def use(outcomes: Outcomes) -> None:
        agent.use(outcomes)
        plan = {f"{case.path} {case.eval_id}": letters for case, letters in outcomes.items()}
        (folder / "outcomes.txt").write_text(json.dumps(plan))
        for file in folder.parent.glob("*"):
            if file.name in [message.encode().hex() for message in plan]:
                file.unlink()

    use(pair.base)
    agent.run()
    base = agent.last
    use(pair.now)
    gate = ("--baseline", base.stem, "--fail-on-regression")
    code, changes = agent.run(*gate)
    options = [word.replace("--", "--evaltui-") for word in (*pair.options, *gate)]
    for workers in ((), ("-n", "2")):
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--evaltui", "desk"]
        done = subprocess.run([*words, *options, *workers], cwd=folder.parent, capture_output=True, text=True)
        assert (done.returncode == 0) == (code == 0), (done.stdout, done.stderr)
        if code != 2:
            _, told_of_session = told(folder, "compare", folder, base, agent.last)
            assert told_of_session == changes
