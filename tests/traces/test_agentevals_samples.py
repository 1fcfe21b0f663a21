"""The samples of agentevals: `evaltui score` says of them what agentevals says."""

import json

import pytest

from tests.commands.command_line import call

METRICS = ("tool_trajectory_avg_score", "response_match_score")
THRESHOLD = 0.8


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_every_sample_has_the_same_verdict_with_every_eval_set(tmp_path, monkeypatch, agentevals):
    monkeypatch.chdir(tmp_path)
    samples = agentevals.source() / "samples"
    sets = sorted(path for path in samples.glob("*.json") if "eval_cases" in json.loads(path.read_text()))
    traces = sorted({*samples.glob("*.json")} - {*sets})
    assert (len(sets), len(traces)) == (3, 5)
    (tmp_path / "config.json").write_text(json.dumps({"criteria": dict.fromkeys(METRICS, THRESHOLD)}))
    for eval_set in sets:
        theirs = agentevals.verdicts(traces, eval_set, METRICS, THRESHOLD)
        ours = []
        for trace in traces:
            words = ("--sets", eval_set, "--home", ".", "--config", "config.json")
            call("score", trace, *words, "--report", "json=report.json")
            (case,) = json.loads((tmp_path / "report.json").read_text())["cases"]
            ours.append(
                {
                    one["name"]: (one["score"], one["status"])
                    for one in case["metrics"]
                    if one["name"] in METRICS
                }
            )
        assert ours == [
            {name: (pytest.approx(score, abs=1e-9), status) for name, (score, status) in one.items()}
            for one in theirs
        ]
        # Each set has a sample that passes, and others that do not.
        assert {status for one in ours for _, status in one.values()} == {"PASSED", "FAILED"}
