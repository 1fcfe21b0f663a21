"""Which failures `--fail-on-regression` excuses, and which run `--baseline last` is."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from command_line import call
from fake_runs import run_without_processes, says

from evaltui.commands.parser import parser_of
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.served import ServedModel
from evaltui.core.model.variants import Change, Variant
from evaltui.core.secrets import Secrets
from evaltui.project.run_settings import RunSettings
from evaltui.runs.baselines import last_baseline, stored_run
from evaltui.runs.matrices import newest_runs
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import RunWriter
from evaltui.runs.store import RunStore
from tests.eval_data import make_case, write_eval_set
from tests.stored_runs import add_case, selected

STATUSES = {"p": Status.PASSED, "f": Status.FAILED, "e": Status.ERROR, "n": Status.NOT_EVALUATED}
WORST_FIRST = "fen"


def summary(eval_id, repeats, pass_if="all"):
    """A case of which each repeat came out as a letter says: `ppf`."""
    passed = repeats.count("p")
    worst = next((letter for letter in WORST_FIRST if letter in repeats), "p")
    return CaseSummary(
        "lights",
        eval_id,
        Status.FLAKY if 0 < passed < len(repeats) else STATUSES[worst],
        len(repeats),
        passed,
        pass_if,
        policy_met=passed / len(repeats) >= (1 if pass_if == "all" else float(pass_if)),
        path="lights.evalset.json",
        statuses=tuple(STATUSES[letter] for letter in repeats) if len({*repeats}) > 1 else (),
    )


def store_run(agent, cases, eval_ids=None, pass_if="all", is_complete=True, served=(), **header):
    """A run of cases by their repeats; without `eval_ids` it is of all cases of its set."""
    # Ids of runs that begin within a millisecond do not tell which of them is the last.
    store = RunStore(agent)
    moment = datetime(2026, 11, 28, 12, len(store.files()), tzinfo=UTC)
    path = store.make() / f"{moment:%Y%m%dT%H%M%S}.000Z-3fb2c1.sqlite"
    lights = selected("lights", eval_ids or cases, whole=eval_ids is None)
    log = RunWriter(path, RunHeader((lights,), started=moment, **header), Secrets())
    for eval_id, repeats in cases.items():
        add_case(log, replace(summary(eval_id, repeats, pass_if), served=served))
    log.close(Ending(Status.PASSED, 1.0) if is_complete else None)
    return log.path.stem


@pytest.fixture
def agent(write_agent):
    return write_agent("")


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        # What passed and fails, by chance or not.
        ("pp", "ff", 1),
        ("pp", "pf", 0),
        ("ppppp", "pffff", 1),
        # What ended with an error, or has no verdict, is no chance.
        ("pp", "ee", 1),
        ("pp", "nn", 1),
        ("ppppp", "ppppe", 1),
        ("ppppp", "ppppn", 1),
        ("p", "e", 1),
        # The same expectation was not met before.
        ("f", "f", 0),
        ("pf", "ff", 0),
        # It failed by its policy before, and fails more often now: by chance or not.
        ("ppppf", "fffff", 1),
        ("ppppf", "ffffe", 1),
        ("ppppf", "feeee", 1),
        ("ppppf", "pffff", 0),
        ("ppppf", "ppppf", 0),
        ("pffff", "fffff", 0),
        ("pffff", "ppppf", 0),
        # A failure excuses no error, an error no failure.
        ("f", "e", 1),
        ("ff", "ee", 1),
        ("f", "n", 1),
        ("pf", "pe", 1),
        ("e", "f", 1),
        ("n", "f", 1),
        # No verdict in either run: no regression, and no pass.
        ("e", "e", 3),
        ("n", "e", 3),
        ("ee", "en", 3),
        ("e", "p", 0),
        # Failed repeats excuse no repeat without a verdict.
        ("ff", "fe", 3),
        ("ff", "fn", 3),
        ("fe", "fe", 3),
        ("pf", "fe", 3),
        ("fe", "ff", 0),
    ],
)
def test_failures_may_be_chance_and_errors_are_not(agent, capsys, before, now, code):
    base, candidate = store_run(agent, {"a": before}), store_run(agent, {"a": now})
    words = ("compare", agent, base, candidate, "--fail-on-regression", "--report", "json")
    assert call(*words) == code
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["regression"] is (code == 1)


@pytest.mark.parametrize("before", ["ppp", "ppf"])
def test_a_stricter_policy_makes_no_failure_a_chance(agent, capsys, before):
    base, now = store_run(agent, {"a": before}, pass_if="0.5"), store_run(agent, {"a": "ppf"})
    assert call("compare", agent, base, now, "--fail-on-regression") == 1
    assert "policy 0.5 → all" in capsys.readouterr().out


def test_a_case_that_fails_more_often_is_named(agent, capsys):
    base = store_run(agent, {"a": "ppppf", "b": "ppppf"})
    now = store_run(agent, {"a": "fffff", "b": "ppppf"})
    assert call("compare", agent, base, now, "--fail-on-regression") == 1
    out = capsys.readouterr().out
    assert "  regression, failed before and passes less often: a\n" in out
    assert "p = 0.0" in out


def test_a_case_without_a_verdict_in_each_repeat_is_named(agent, capsys):
    base, now = store_run(agent, {"a": "ff", "b": "ff"}), store_run(agent, {"a": "fe", "b": "ff"})
    assert call("compare", agent, base, now, "--fail-on-regression") == 3
    assert "  no verdict in each repeat: a\n" in capsys.readouterr().out


def test_errors_before_hide_no_cases_that_fail_more_often_now(agent, capsys):
    """Six cases together are evidence, however many others have a verdict again."""
    worse = {f"worse{number}": "ppppp" for number in range(6)}
    back = {f"back{number}": "eeeee" for number in range(6)}
    base = store_run(agent, {**worse, **back})
    now = store_run(agent, {**dict.fromkeys(worse, "pppff"), **dict.fromkeys(back, "ppppp")})
    assert call("compare", agent, base, now, "--fail-on-regression") == 1
    assert "better on 0, worse on 6 of 6 cases" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("newer", "why"),
    [
        ([{"cases": {"a": "p"}, "is_complete": False}], "interrupted"),
        ([{"cases": {"a": "p"}, "eval_ids": "ab", "is_complete": True}], "incomplete"),
        ([{"cases": {"a": "p"}, "eval_ids": "a"}], "not all of the cases"),
        ([{"cases": {"a": "e", "b": "p"}, "baseline": "{first}"}], "1 regression from {first}"),
        # The file of a baseline elsewhere may have the name of a run, or be called last or 2.
        ([{"cases": {"a": "e", "b": "p"}, "baseline": "first"}], "its baseline first is missing"),
        ([{"cases": {"a": "e", "b": "p"}, "baseline": "last"}], "its baseline last is missing"),
        ([{"cases": {"a": "f", "b": "p"}, "baseline": "gone"}], "its baseline gone is missing"),
        # A failure that the baseline has, too, is none.
        ([{"cases": {"a": "p", "b": "f"}, "baseline": "{first}"}], ""),
        ([{"cases": {"a": "p", "b": "p"}, "baseline": "gone"}], ""),
        ([{"cases": {"a": "p", "b": "f"}}, {"cases": {"a": "p"}, "eval_ids": "a"}], "not all of the cases"),
    ],
)
def test_last_is_the_last_complete_run_that_did_not_regress(agent, newer, why):
    first = expected = store_run(agent, {"a": "p", "b": "f"})
    RunStore(agent).name(expected, "first")
    for number, run in enumerate(newer):
        last = store_run(agent, **{**run, "baseline": run.get("baseline", "").format(first=first)})
        if not why or number < len(newer) - 1:
            expected = last
    store_run(agent, {"a": "p", "b": "p"})
    store = RunStore(agent)
    path, note = last_baseline(stored_run(store, store.latest()))
    assert path.stem == expected
    note, _, broken = note.partition(". 1 case that other runs passed did not pass in")
    skipped = f"--baseline last is {expected}. Skipped: {last} ({why.format(first=first)})"
    assert note == (skipped if why else "")
    assert not broken or broken.startswith(f" {expected}: b (in {last})")


@pytest.mark.parametrize(
    ("runs", "broken"),
    [
        (["ppf", "pff"], "1 case that other runs passed did not pass in {1}: b (in {0})"),
        (
            ["ppp", "pfp", "ppf", "fff"],
            "3 cases that other runs passed did not pass in {3}: a (in {2}), b (in {2}), c (in {1})",
        ),
        # A run that is the same hides nothing.
        (["pp", "pf", "pf"], "1 case that other runs passed did not pass in {2}: b (in {0})"),
        (["pp", *["pf"] * 11], "1 case did not pass in {11}, nor in 10 other runs"),
        (["pf", "pp"], ""),
        (["pf", "pf"], ""),
    ],
)
def test_a_run_without_a_gate_in_which_cases_broke_is_no_silent_baseline(agent, runs, broken):
    ids = [store_run(agent, dict(zip("abc", cases, strict=False))) for cases in runs]
    store_run(agent, dict.fromkeys("abc"[: len(runs[0])], "p"))
    store = RunStore(agent)
    path, note = last_baseline(stored_run(store, store.latest()))
    assert path.stem == ids[-1]
    advice = ". Name a run that passed to compare with it"
    assert note == (broken and f"--baseline last is {ids[-1]}. {broken.format(*ids)}{advice}")


def test_a_case_that_a_skipped_run_passed_is_named(agent):
    first = store_run(agent, {"b": "p", "c": "f"})
    second = store_run(agent, {"b": "f", "c": "p"}, baseline=first)
    store_run(agent, {"b": "p", "c": "f"})
    store = RunStore(agent)
    path, note = last_baseline(stored_run(store, store.latest()))
    assert path.stem == first
    assert f"1 case that other runs passed did not pass in {first}: c (in {second})" in note


def test_a_run_in_which_a_case_broke_without_evidence_is_not_the_last_baseline(agent, capsys):
    """Else a case could fall from all of its repeats to none, a little in every run."""
    first = store_run(agent, {"a": "ppppp"})
    second = store_run(agent, {"a": "ppppf"}, baseline=first)
    assert call("compare", agent, first, second, "--fail-on-regression") == 0
    store_run(agent, {"a": "fffff"})
    store = RunStore(agent)
    path, note = last_baseline(stored_run(store, store.latest()))
    assert path.stem == first
    assert f"Skipped: {second} (1 case broken since {first}, without evidence)" in note


def test_a_run_that_begins_after_the_clock_went_back_is_the_last_one(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", make_case("a", turn("a")))
    run_without_processes(monkeypatch, says("wrong"))
    assert call("run", agent) == 1
    store = RunStore(agent)
    ahead = store.latest()
    ahead.rename(ahead.with_name(f"2999{ahead.name[4:]}"))
    run_without_processes(monkeypatch, says("right"))
    for number in (2, 3):
        assert call("run", agent, "--keep-runs", 1) == 0
        capsys.readouterr()
        assert call("runs", agent) == 0
        assert capsys.readouterr().out.startswith(f"✓ run {number} ")
        assert len(store.files()) == 1
    assert call("report", agent, "last", "--report", "json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "PASSED"


def test_scored_traces_stand_for_no_run_of_the_agent(agent):
    """A case that failed in them is not excused, and --failed leaves out none that passed in them."""
    store = RunStore(agent)
    first = store_run(agent, {"a": "p", "b": "f"})
    scored = [store_run(agent, {"a": "f", "b": "p"}, traces=("traces.json",)) for _ in range(2)]
    assert [path.stem for path in newest_runs(store)] == [first]
    path, _ = last_baseline(stored_run(store, store.latest()))
    assert path.stem == scored[0]
    store_run(agent, {"a": "p", "b": "p"})
    path, note = last_baseline(stored_run(store, store.latest()))
    assert (path.stem, note) == (first, "")


@pytest.mark.parametrize(
    "other",
    [
        {"agent_name": "weather"},
        {"module": "my_agent.other"},
        {"url": "http://127.0.0.1:8000/app"},
        {"settings": RunSettings(adk_verdicts=True)},
        {"in_process": True},
        {"variant": Variant("warm", (Change("env.TONE", "warm"),))},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_last_run_is_one_of_the_same_agent_and_verdicts(agent, other):
    """A failure of a sub-agent excuses none of the root agent, nor the other way round."""
    first = store_run(agent, {"a": "p"})
    of_other = store_run(agent, {"a": "f"}, **other)
    store = RunStore(agent)
    with pytest.raises(SelectionError, match=r"no runs of .* with the same agent, variant and verdicts"):
        last_baseline(stored_run(store, store.latest()))
    store_run(agent, {"a": "f"})
    assert last_baseline(stored_run(store, store.latest()))[0].stem == first
    store_run(agent, {"a": "f"}, **other)
    assert last_baseline(stored_run(store, store.latest()))[0].stem == of_other


def test_a_comparison_names_the_options_that_differ(agent, capsys):
    base = store_run(agent, {"a": "p"}, agent_name="weather", settings=RunSettings(record="replay"))
    candidate = store_run(agent, {"a": "p"}, url="http://127.0.0.1:8000/app")
    assert call("compare", agent, base, candidate) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "between them --agent weather → root; record replay → off; tools stub → live" in out
    assert call("compare", agent, base, base) == 0
    assert "between them" not in capsys.readouterr().out


def test_a_run_of_another_agent_excuses_and_leaves_out_nothing(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", *(make_case(eval_id, turn(eval_id)) for eval_id in "ab"))

    def half_right(case, repeat):
        return says("right" if case.eval_id == "a" else "wrong")(case, repeat)

    fake = run_without_processes(monkeypatch, half_right)
    gate = ("--baseline", "last", "--fail-on-regression")
    assert call("run", agent) == 1
    fake.act = says("wrong")
    assert call("run", agent, "--agent", "weather") == 1
    assert call("run", agent, *gate) == 1
    fake.act = half_right
    assert call("run", agent, *gate) == 0
    fake.act = says("right")
    assert call("run", agent, "--agent", "weather", *gate) == 0
    capsys.readouterr()
    assert call("run", agent, "--failed", "--report", "json") == 0
    assert [case["eval_id"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["b"]


def test_without_a_complete_run_there_is_no_last_baseline(agent, capsys):
    broken = store_run(agent, {"a": "p"}, is_complete=False)
    candidate = store_run(agent, {"a": "p"})
    assert call("report", agent, candidate, "--baseline", "last") == 2
    said = f"--baseline last: no run to compare with: {broken} (interrupted). Name a run"
    assert said in capsys.readouterr().err


def turn(text):
    said = {"final_response": {"role": "model", "parts": [{"text": "right"}]}}
    return {"user_content": {"role": "user", "parts": [{"text": text}]}, **said}


def test_a_config_in_other_words_is_no_other_expectation(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", make_case("a", turn("a")))
    run_without_processes(monkeypatch, says("wrong"))
    config = agent / "test_config.json"
    config.write_text(json.dumps({"criteria": {"response_match_score": 0.8}}))
    assert call("run", agent) == 1
    gate = ("run", agent, "--baseline", "last", "--fail-on-regression")
    prices = {"m": {"input_mtok": 1, "output_mtok": 2}}
    for criterion in ({"threshold": 0.8}, {"lowerIsBetter": False, "threshold": "0.8"}):
        block = {"prices": prices, "optional": ["safety_v1"]}
        config.write_text(json.dumps({"evaltui": block, "criteria": {"response_match_score": criterion}}))
        capsys.readouterr()
        assert call(*gate) == 0
        assert "1 unchanged" in capsys.readouterr().out
    config.write_text(json.dumps({"criteria": {"response_match_score": 0.7}}))
    assert call(*gate) == 1
    assert "config: criteria.response_match_score 0.8 → 0.7" in capsys.readouterr().out


def test_a_secret_in_a_config_is_no_other_expectation(agent, monkeypatch, capsys):
    """Logs have it masked; the config of the run that is compared with them is the same."""
    write_eval_set(agent, "lights", make_case("a", turn("a")))
    (agent / ".env").write_text("API_KEY=sk-abcdefgh12345678\n")
    rule = {"tool": "find", "arg": "key", "match": {"any_of": ["sk-abcdefgh12345678"]}}
    config = {"criteria": {"response_match_score": 0.8}, "evaltui": {"rules": [rule]}}
    (agent / "test_config.json").write_text(json.dumps(config))
    run_without_processes(monkeypatch, says("wrong"))
    assert call("run", agent) == 1
    assert call("run", agent, "--baseline", "last", "--fail-on-regression") == 0
    out = capsys.readouterr().out
    assert "1 unchanged" in out
    assert "sk-abc" not in out


def test_a_run_that_regressed_is_no_baseline_and_a_gate_without_effect_is_refused(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", make_case("a", turn("a")))
    gate = ("run", agent, "--runs", "2", "--baseline", "last", "--fail-on-regression")
    fake = run_without_processes(monkeypatch, says("right"))
    assert call("run", agent, "--runs", "2") == 0
    first = RunStore(agent).latest().stem

    def crash(case, repeat):
        raise RuntimeError("no boiler")

    for act in (says("wrong"), crash, crash):
        fake.act = act
        assert call(*gate) == 1
    out = capsys.readouterr().out
    assert f"--baseline last is {first}. Skipped: " in out
    assert "without evidence" not in out
    fake.act = says("right")
    assert call(*gate) == 0
    # Of a case that is flaky in the baseline, two repeats that fail prove nothing.
    fake.act = lambda case, repeat: says("right" if repeat else "wrong")(case, repeat)
    assert call("run", agent, "--runs", "2", "--pass-if", "0.5") == 0
    runs = len(RunStore(agent).files())
    capsys.readouterr()
    assert call(*gate, "--pass-if", "0.5") == 2
    assert (
        "--fail-on-regression has no effect: even if every repeat failed, p = 0.5, above --alpha 0.05. "
        in (capsys.readouterr().err)
    )
    assert len(RunStore(agent).files()) == runs
    assert call(*gate, "--pass-if", "0.5", "--alpha", "0.5") == 0


def _with_other_criteria(agent):
    (agent / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.7}}))


def _with_other_cases(agent):
    file = agent / "lights.evalset.json"
    file.write_text(file.read_text().replace('"right"', '"quite right"'))


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (None, ["lights:b"], 2),
        # The cases of all shards together may be evidence.
        (None, ["--shard", "1/8"], 0),
        # A failure of another expectation is a regression.
        (_with_other_criteria, ["lights:b"], 1),
        (_with_other_cases, ["lights:b"], 1),
    ],
)
def test_a_gate_is_refused_only_where_no_failure_could_trip_it(agent, monkeypatch, change, words, code):
    write_eval_set(agent, "lights", *(make_case(eval_id, turn(eval_id)) for eval_id in "abcdefgh"))
    (agent / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.8}}))
    fake = run_without_processes(monkeypatch)
    fake.act = lambda case, repeat: says("wrong" if repeat and case.eval_id != "a" else "right")(case, repeat)
    flaky = ("--runs", 2, "--pass-if", 0.5)
    assert call("run", agent, *flaky) == 0
    if change is not None:
        change(agent)
        fake.act = says("wrong")
    gate = ("--baseline", "last", "--fail-on-regression")
    assert call("run", agent, *words, *flaky, *gate) == code


def test_a_resumed_run_that_regressed_is_no_baseline(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", *(make_case(eval_id, turn(eval_id)) for eval_id in "ab"))
    fake = run_without_processes(monkeypatch, says("right"))
    assert call("run", agent) == 0
    first = RunStore(agent).latest().stem

    def offline(case, repeat):
        if case.eval_id == "b":
            raise RuntimeError("offline")
        return says("wrong")(case, repeat)

    gate = ("run", agent, "--baseline", "last", "--fail-on-regression")
    fake.act = offline
    assert call(*gate) == 1
    fake.act = says("right")
    assert call("run", agent, "--resume", "last") == 1
    fake.act = says("wrong")
    capsys.readouterr()
    assert call(*gate) == 1
    assert f"--baseline last is {first}. Skipped: " in " ".join(capsys.readouterr().out.split())


def test_a_run_is_not_compared_with_its_own_results(agent, monkeypatch):
    """A failure that is kept each time the run is resumed, or merged again, would excuse itself."""
    write_eval_set(agent, "lights", *(make_case(eval_id, turn(eval_id)) for eval_id in "abc"))
    fake = run_without_processes(monkeypatch, says("right"))
    assert call("run", agent) == 0

    def offline(*cases):
        def act(case, repeat):
            if case.eval_id in cases:
                raise RuntimeError("offline")
            return says("wrong" if case.eval_id == "a" else "right")(case, repeat)

        return act

    fake.act = offline("b", "c")
    assert call("run", agent) == 1
    started = RunStore(agent).latest()
    for cases in ("b", ""):
        fake.act = offline(*cases)
        assert call("run", agent, "--resume", "last", "--only-new-failures") == 1
    whole = RunStore(agent).latest()
    assert call("merge", agent, started, whole) == 1
    assert call("merge", agent, started, whole, "--only-new-failures") == 1


def test_only_new_failures_is_the_short_name_of_a_baseline_and_its_gate(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", *(make_case(eval_id, turn(eval_id)) for eval_id in "ab"))
    fake = run_without_processes(monkeypatch, says("right"))
    gate = ("run", agent, "--only-new-failures")
    assert call(*gate) == 2
    assert "--baseline last: no runs of" in capsys.readouterr().err
    fake.act = lambda case, repeat: says("wrong" if case.eval_id == "a" else "right")(case, repeat)
    assert call("run", agent) == 1
    first = RunStore(agent).latest().stem
    assert call(*gate) == 0
    fake.act = says("wrong")
    assert call(*gate) == 1
    assert call(*gate, "--baseline", first, "--fail-on-regression") == 1
    fake.act = says("right")
    assert call(*gate, "--baseline", first) == 0


@pytest.mark.parametrize("flag", ["--watch", "--estimate", "--exit-zero"])
def test_only_new_failures_refuses_what_has_no_such_exit_code(flag, agent, capsys):
    with pytest.raises(SystemExit, match="2"):
        parser_of("run").parse([str(agent), "--only-new-failures", flag])
    expected = f"evaltui run: --only-new-failures cannot be used together with {flag}\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(("of_adk", "whose"), [((True, False), "baseline"), ((False, True), "candidate")])
def test_a_failure_in_a_run_that_google_adk_stored_excuses_none(agent, capsys, of_adk, whose):
    runs = [store_run(agent, {"a": "f"}, of_adk=is_of_adk) for is_of_adk in of_adk]
    assert call("compare", agent, *runs, "--fail-on-regression") == 1
    assert f"the {whose} does not say what was expected" in capsys.readouterr().out


def test_a_candidate_without_a_case_of_the_baseline_is_no_pass(agent, capsys):
    base = store_run(agent, {"a": "p", "b": "p"})
    other = store_run(agent, {"c": "p"}, eval_ids="c")
    results = agent / ".adk" / "eval_history"
    results.mkdir(parents=True)
    entry = {"eval_id": "c", "final_eval_status": 1, "session_id": "s"}
    text = json.dumps({"eval_set_id": "lights", "eval_case_results": [entry]})
    (results / "of_adk_1.evalset_result.json").write_text(text)
    for candidate in (other, "of_adk_1"):
        assert call("compare", agent, base, candidate, "--fail-on-regression") == 3
        printed = capsys.readouterr()
        assert "nothing compared: no case has a result in both runs" in printed.out
        assert "no regression could be found" in printed.err
        assert "a, b" in printed.out
    assert call("merge", agent, other, "--baseline", base, "--fail-on-regression") == 3
    assert "no regression could be found" in capsys.readouterr().err


def test_a_selection_names_the_cases_that_it_leaves_out(agent, capsys):
    base = store_run(agent, {"a": "p", "b": "p"})
    some = store_run(agent, {"a": "p"}, eval_ids="a")
    assert call("compare", agent, base, some, "--fail-on-regression") == 0
    assert "  not in the candidate: b\n" in capsys.readouterr().out


def judged_by(version):
    return (ServedModel("judge", "pro", version, "answer"),)


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [("pp", "ff", 0), ("pp", "fe", 1), ("pp", "ee", 1), ("pp", "fn", 3), ("pp", "nn", 3)],
)
def test_another_judge_excuses_no_repeat_without_a_verdict(agent, capsys, before, now, code):
    runs = [
        store_run(agent, {"a": repeats}, served=judged_by(version))
        for repeats, version in ((before, "pro-001"), (now, "ultra-002"))
    ]
    assert call("compare", agent, *runs, "--fail-on-regression") == code


def test_a_flaky_case_that_passes_by_its_policy_is_no_failed_case(agent, monkeypatch, capsys):
    write_eval_set(agent, "lights", *(make_case(eval_id, turn(eval_id)) for eval_id in "ab"))

    def act(case, repeat):
        return says("right" if case.eval_id == "a" and repeat else "wrong")(case, repeat)

    run_without_processes(monkeypatch, act)
    assert call("run", agent, "--runs", "3", "--pass-if", "majority") == 1
    capsys.readouterr()
    assert call("run", agent, "--failed", "--report", "json") == 1
    assert [case["eval_id"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["b"]


NEVER = {"is_the_agent_response_valid": "invalid", "reasoning": "no"}
OPTIONS = {"judge_model": "metrics:own", "num_samples": 1}
ADK_VERDICT = """
from evaltui import EvaluationResult, PerInvocationResult, Status
def own(metric, actual, *_):
    failed = {"score": 0.0, "eval_status": Status.FAILED}
    turns = [PerInvocationResult(actual_invocation=turn, **failed) for turn in actual]
    return EvaluationResult(
        overall_score=0.0, overall_eval_status=Status.FAILED, per_invocation_results=turns
    )
"""


@pytest.mark.parametrize(
    ("code", "config"),
    [
        (
            "def own(*_): return 0.0\n",
            {"evaltui": {"criteria": {"own": {"threshold": 1.0, "function": "metrics.own"}}}, "criteria": {}},
        ),
        (
            ADK_VERDICT,
            {"criteria": {"own": 1.0}, "customMetrics": {"own": {"codeConfig": {"name": "metrics.own"}}}},
        ),
        (
            f"def own(_): return {json.dumps(NEVER)!r}\n",
            {"criteria": {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": OPTIONS}}},
        ),
    ],
    ids=["metric", "metric of google-adk", "judge"],
)
def test_a_failure_by_other_code_of_a_metric_excuses_none(agent, capsys, code, config):
    """What the module of the function imports counts as its code."""
    (agent / "agent.py").write_text("root_agent = lambda message, session: message\n")
    (agent / "test_config.json").write_text(json.dumps(config))
    (agent / "metrics.py").write_text(f"import limits\n{code}")
    write_eval_set(agent, "lights", make_case("a", turn("a")))
    for limit in (1, 1, 2):
        (agent / "limits.py").write_text(f"LIMIT = {limit}\n")
        assert call("run", agent) == 1
    capsys.readouterr()
    codes = [call("compare", agent, base, str(int(base) + 1), "--fail-on-regression") for base in "12"]
    assert codes == [0, 1]
    assert "the code of metrics.own changed" in capsys.readouterr().out
