from command_line import call

from evaltui.core.metrics.registry import METRICS


def test_every_metric_is_listed_within_80_cells(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert call("metrics") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[1]: line for line in lines if line[:2] in ("✓ ", "– ")}
    assert list(rows) == list(METRICS)
    assert {rows[name][0] == "✓" for name, info in METRICS.items() if info.function} == {True}
    assert {rows[name][0] == "–" for name, info in METRICS.items() if not info.function} == {True}
    assert len({row.index(row.split()[2]) for row in rows.values()}) == 1


def test_meaning_range_and_needs(capsys):
    call("metrics")
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "response_evaluation_score 1 to 5 criteria How coherent the answers are, as Vertex AI rates them. "
        "Not computed by this version: needs expected turns and Vertex AI." in text
    )
    assert "tool_call_count_v1 0 and up always reported Tool calls per turn." in text
    assert "trajectory_recall 0 to 1 evaltui.criteria" in text
