"""The samples of agentevals: `evaltui score` says of them what agentevals says."""

import json

import pytest

from tests.commands.command_line import call

METRICS = ("tool_trajectory_avg_score", "response_match_score")
THRESHOLD = 0.8


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_every_eval_set_has_the_same_samples_and_verdicts(
    tmp_path, monkeypatch, agentevals, agentevals_source
):
    monkeypatch.chdir(tmp_path)
    samples = agentevals_source / "samples"
    sets = sorted(path for path in samples.glob("*.json") if "eval_cases" in json.loads(path.read_text()))
    traces = sorted({*samples.glob("*.json")} - {*sets})
    assert (len(sets), len(traces)) == (3, 5)
    (tmp_path / "config.json").write_text(json.dumps({"criteria": dict.fromkeys(METRICS, THRESHOLD)}))
    for eval_set in sets:
        theirs = agentevals.verdicts(traces, eval_set, METRICS, THRESHOLD)
        words = ("--sets", eval_set, "--home", ".", "--config", "config.json")
        code = call("score", *traces, *words, "--report", "json=report.json")
        report = json.loads((tmp_path / "report.json").read_text())
        (case,) = report["cases"]
        ours = [
            {
                one["name"]: (one["score"], one["status"])
                for one in repeat["metrics"]
                if one["name"] in METRICS
            }
            for repeat in case["repeats"]
        ]
        # What has no case gets no score from either; evaltui names it, and exits 3 where nothing failed.
        alike = [one for one in theirs if one["response_match_score"][1] != "NOT_EVALUATED"]
        assert f"{len(traces) - len(alike)} of {len(traces)} conversations match" in report["notes"][0]
        assert code == (1 if any(status == "FAILED" for one in ours for _, status in one.values()) else 3)
        assert ours == [
            {name: (pytest.approx(score, abs=1e-9), status) for name, (score, status) in one.items()}
            for one in alike
        ]
