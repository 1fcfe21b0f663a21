"""How fast, as ratios: `python tests/benchmarks [NAME...]` measures both sides of each row in one run.

Needs `.[adk,compat,test]`, and promptfoo and agentevals for their rows (`npm install --global promptfoo`, and
`pip install agentevals-cli` into an environment of its own whose programs are on PATH), which are left out
without. A row is the median of several runs, the two sides taken in turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agents import (
    adk_calls,
    adk_echo,
    function_echo,
    native_echo,
    write_calls_set,
    write_long_set,
    write_promptfoo,
    write_set,
)
from measuring import LargeSet, Row, first_paint, medians, seconds_of, table, used_by
from recorded_traces import write_traces

from evaltui.documents.saving import read_source
from evaltui.project.agent_files import files_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from large_runs import write_run_apart

EVALTUI = [sys.executable, "-m", "evaltui"]
ADK = [str(Path(sys.executable).with_name("adk"))]


def one_adk_case_cold(folder: Path) -> list[Row]:
    agent = adk_echo(folder)
    path = write_set(agent, cases=1)
    run = [*EVALTUI, "run", str(agent)]
    importing = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(folder)!r}); import adk_echo.agent",
    ]
    ours, theirs = medians(
        5, lambda: seconds_of(run), lambda: seconds_of([*ADK, "eval", str(agent), str(path)])
    )
    again, imported = medians(5, lambda: seconds_of(run), lambda: seconds_of(importing))
    what = "one case, google-adk agent, cold"
    return [
        Row(f"{what} / adk eval", ours, theirs, bar=1 / 4),
        Row(f"{what} / importing the agent in bare Python", again, imported, bar=1.5),
    ]


def one_native_case_cold(folder: Path) -> Row:
    native, adk = native_echo(folder), adk_echo(folder)
    write_set(native, cases=1)
    path = write_set(adk, cases=1)
    ours, theirs = medians(
        5,
        lambda: seconds_of([*EVALTUI, "run", str(native)]),
        lambda: seconds_of([*ADK, "eval", str(adk), str(path)]),
    )
    return Row("one case, native agent, cold / adk eval", ours, theirs, bar=1 / 8)


def one_native_case_and_promptfoo(folder: Path) -> list[Row]:
    promptfoo = shutil.which("promptfoo")
    if promptfoo is None:
        print("no promptfoo here: its row is left out", file=sys.stderr)
        return []
    native = native_echo(folder)
    write_set(native, cases=1)
    config = write_promptfoo(folder)
    os.environ |= {"PROMPTFOO_CONFIG_DIR": str(folder), "PROMPTFOO_DISABLE_UPDATE": "1"}
    os.environ["PROMPTFOO_DISABLE_TELEMETRY"] = "1"
    ours, theirs = medians(
        5,
        lambda: seconds_of([*EVALTUI, "run", str(native)]),
        lambda: seconds_of([promptfoo, "eval", "--no-cache", "--no-write", "-c", str(config)]),
    )
    return [Row("one case, native agent, cold / promptfoo eval, provider echo", ours, theirs, bar=1.0)]


def recorded_traces_and_agentevals(folder: Path) -> list[Row]:
    agentevals = shutil.which("agentevals")
    if agentevals is None:
        print("no agentevals here: its row is left out", file=sys.stderr)
        return []
    traces, path = write_traces(folder)
    metrics = [
        word for name in ("tool_trajectory_avg_score", "response_match_score") for word in ("-m", name)
    ]
    ours, theirs = medians(
        3,
        lambda: seconds_of([*EVALTUI, "score", str(traces), "--sets", str(path), "--home", str(folder)]),
        lambda: seconds_of([agentevals, "run", str(traces), "-e", str(path), *metrics, "-o", "summary"]),
    )
    return [
        Row("500 recorded conversations, 78 MB of traces, scored / agentevals run", ours, theirs, bar=1.0)
    ]


def thousand_adk_cases(folder: Path) -> list[Row]:
    echo, calls = adk_echo(folder), adk_calls(folder)
    return [
        _thousand("one-turn cases", echo, write_set(echo, cases=1000), bar=0.4),
        _thousand("cases with calls", calls, write_calls_set(calls, cases=1000), bar=0.5),
    ]


def _thousand(what: str, agent: Path, path: Path, bar: float) -> Row:
    ours, theirs = medians(
        3,
        lambda: seconds_of([*EVALTUI, "run", str(agent), "--workers", "2"]),
        lambda: seconds_of([*ADK, "eval", str(agent), str(path)]),
    )
    return Row(f"1,000 {what}, google-adk agent, two hosts, cold / adk eval", ours, theirs, bar=bar)


def four_workers(folder: Path) -> list[Row]:
    agent = function_echo(folder)
    write_set(agent, cases=10_000)
    run = [*EVALTUI, "run", str(agent)]
    on_cluster = [*run, "--scheduler", "local:4"]
    rows = []
    for hosts in ("4", "2"):
        here = [*run, "--workers", hosts]
        ours, theirs = medians(3, lambda: seconds_of(on_cluster), lambda here=here: seconds_of(here))
        what = f"10,000 cases, function agent, four workers of a cluster / {hosts} local hosts"
        rows.append(Row(what, ours, theirs, bar=1.15))
    return rows


def runner_overhead(folder: Path) -> Row:
    agent = adk_echo(folder)
    bare, ours = [
        [sys.executable, _beside("runner_loop.py"), str(agent), side] for side in ("bare", "adapter")
    ]
    mine, theirs = medians(
        5, lambda: seconds_of(ours, own_clock=True), lambda: seconds_of(bare, own_clock=True)
    )
    return Row("per invocation / a bare loop of ADK's Runner", mine, theirs, bar=1.25)


def case_with_calls(folder: Path) -> Row:
    agent = adk_calls(folder)
    path = write_calls_set(agent, cases=350)
    bare, ours = [
        [sys.executable, _beside("case_overhead.py"), side, str(agent), str(path)]
        for side in ("bare", "evaltui")
    ]
    mine, theirs = medians(
        5, lambda: seconds_of(ours, own_clock=True), lambda: seconds_of(bare, own_clock=True)
    )
    return Row("processor time of a case with calls / a bare loop of ADK's Runner", mine, theirs, bar=1.2)


def save_to_verdict(folder: Path) -> Row:
    ours, theirs = _warm(folder, "save")
    return Row("save an agent file -> verdict on one case, watched / adk eval", ours, theirs, bar=1 / 100)


def run_again(folder: Path) -> Row:
    ours, theirs = _warm(folder, "again")
    return Row("one case again in the workbench / adk eval", ours, theirs, bar=1 / 250)


def _warm(folder: Path, what: str) -> tuple[float, float]:
    agent = adk_echo(folder)
    path = write_set(agent, cases=1)
    script = _beside("warm.py")
    return medians(
        3,
        lambda: seconds_of([sys.executable, script, what, str(agent)], own_clock=True),
        lambda: seconds_of([*ADK, "eval", str(agent), str(path)]),
    )


def first_frame(folder: Path) -> Row:
    agent = function_echo(folder)
    write_set(agent, cases=1000)
    hello = [sys.executable, _beside("hello_app.py")]
    ours, theirs = medians(
        5,
        lambda: first_paint([*EVALTUI, str(agent)], "case_00000"),
        lambda: first_paint(hello, "Hello"),
    )
    return Row("first frame with 1,000 cases / a Textual hello app", ours, theirs, bar=3.0)


def ten_thousand_cases(folder: Path) -> list[Row]:
    agent = function_echo(folder)
    path = write_set(agent, cases=10_000, padding=1000)
    workbench, textual = [*EVALTUI, str(agent)], [sys.executable, _beside("textual_list.py"), str(path)]
    for command in (workbench, textual):
        first_paint(command, "case_00000")
    with LargeSet(textual, 10_000, first="\x1b[H", last="\x1b[F") as a_list:
        theirs = a_list.measure()
    with LargeSet(workbench, 10_000, first="g", last="G") as opened:
        ours = opened.measure()
        opened.terminal.answer("R", "Run 1 finished")
        all_run = opened.megabytes
    what = "10,000 cases, 20 MB / a list of Textual's:"
    return [
        Row(f"{what} open", ours.opened, theirs.opened, most=2.0),
        Row(f"{what} a key as soon as they are seen, to paint", ours.first_key, theirs.first_key),
        Row(f"{what} key to paint", ours.painted, theirs.painted, most=0.05),
        Row(f"{what} filter typed to paint", ours.filtered, theirs.filtered, most=0.1),
        Row(f"{what} resident memory", ours.megabytes, theirs.megabytes, most=250.0, unit="MB"),
        Row("10,000 cases: resident memory when all have been run", all_run, most=250.0, unit="MB"),
    ]


def hundred_thousand_cases(folder: Path) -> list[Row]:
    """What commands take of a run of 100,000 cases of 1 KB, and that run; its log has 3 KB a case."""
    agent = function_echo(folder)
    write_set(agent, cases=100_000, padding=250)
    store = agent / ".evaltui" / "runs"
    store.mkdir(parents=True)
    run = str(write_run_apart(store / "20260102T030405.000Z-abcdef.sqlite", 100_000))
    shards = [
        str(write_run_apart(folder / f"{number}.sqlite", 100_000, shard=(number, 8)))
        for number in range(1, 9)
    ]
    commands = {
        "listed (evaltui runs)": (["runs", str(agent)], 5.0),
        "reported (console)": (["report", str(agent), run], 30.0),
        **{
            f"reported ({kind})": (["report", str(agent), run, "--report", f"{kind}={folder / kind}"], 60.0)
            for kind in ("json", "csv", "junit", "markdown", "html")
        },
        "compared with itself": (["compare", str(agent), run, run], 30.0),
        "merged from 8 shards": (["merge", *shards, "-o", str(folder / "merged.sqlite")], 60.0),
        "run, a function agent": (["run", str(agent), "--record", "off"], None),
    }
    rows = []
    for what, (words, most) in commands.items():
        seconds, megabytes = used_by([*EVALTUI, *words])
        rows.append(Row(f"100,000 cases {what}: processor time", seconds, most=most))
        rows.append(Row(f"100,000 cases {what}: memory at the peak", megabytes, most=400.0, unit="MB"))
    return rows


def hundred_thousand_in_list(folder: Path) -> list[Row]:
    """The workbench with 100,000 cases of 1 KB and a run of all of them."""
    agent = function_echo(folder)
    path = write_set(agent, cases=100_000, padding=250)
    store = agent / ".evaltui" / "runs"
    store.mkdir(parents=True)
    log = store / "20260102T030405.000Z-abcdef.sqlite"
    fingerprint = read_source(path).fingerprint
    write_run_apart(log, 100_000, failed=20, fingerprint=fingerprint, files=files_of(agent))
    command = [*EVALTUI, str(agent)]
    first_paint(command, "case_00000")
    with LargeSet(command, 100_000, first="g", last="G") as opened:
        listed = opened.terminal.wait_for("case_00000")
        results = opened.terminal.wait_for("95,000/100,000") - listed
        opened.terminal.settle()
        measured = opened.measure()
    what = "100,000 cases of 1 KB in the workbench:"
    return [
        Row(f"{what} listed", listed),
        Row(f"{what} results of the run before, from then on", results),
        Row(f"{what} key to paint", measured.painted),
        Row(f"{what} filter typed to paint", measured.filtered),
        Row(f"{what} resident memory", measured.megabytes, unit="MB"),
    ]


def large_edits(folder: Path) -> list[Row]:
    agent = function_echo(folder)
    write_set(agent, cases=10_000, padding=1000)
    command = [sys.executable, _beside("large_edits.py"), str(agent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took = json.loads(done.stdout)
    what = "10,000 cases, 20 MB:"
    return [
        Row(f"{what} first edit", took["first"], most=0.1),
        Row(f"{what} a character typed into a field", took["typed"], most=0.1),
        Row(f"{what} undo", took["undo"], most=0.1),
        Row(f"{what} save that merges what others changed", took["merging_save"], most=1.0),
        Row(f"{what} keys wait meanwhile, at most", took["save_holds_up"], most=0.1),
        Row(f"{what} undo of what was done before that", took["undo_after_merge"], most=0.5),
        Row(f"{what} memory at the peak", took["peak"], most=350.0, unit="MB"),
    ]


def rescore(_: Path) -> list[Row]:
    turns, calls = (
        seconds_of([sys.executable, _beside("rescore.py"), what], own_clock=True)
        for what in ("turns", "calls")
    )
    return [
        Row("re-score of a ten-turn case", turns, most=1 / 60),
        Row("re-score of a turn of 1,000 calls that all differ", calls, most=0.2),
    ]


def gaps(folder: Path) -> list[Row]:
    agent = function_echo(folder)
    write_long_set(agent, 10_000)
    seconds_of([*EVALTUI, "run", str(agent)])
    seconds, megabytes = used_by([*EVALTUI, "gaps", str(agent)])
    what = "10,000 cases of two turns and 60 words, ten changes each, scored again"
    return [
        Row(f"{what}: processor time", seconds, most=60.0),
        Row(f"{what}: memory at the peak", megabytes, most=500.0, unit="MB"),
    ]


def accept(_: Path) -> Row:
    spent = seconds_of([sys.executable, _beside("accept.py")], own_clock=True)
    return Row("5,000 cases that differ, accepted at once", spent, most=5.0)


def html_report(_: Path) -> list[Row]:
    done = subprocess.run(
        [sys.executable, _beside("page_paint.py")], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    what = "HTML report of 1,000 cases"
    return [
        Row(f"{what}: first paint / an empty page as large", found["ours"], found["theirs"], bar=2.0),
        Row(f"{what}, 100 of which failed: size", found["megabytes"], most=2.0, unit="MB"),
    ]


def loaded_plugin(folder: Path) -> Row:
    """The plugin is found by pytest wherever evaltui is installed."""
    (folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
    pytest = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), "-p", "no:cacheprovider"]
    with_it, without = medians(
        9,
        lambda: used_by([*pytest, str(folder)])[0],
        lambda: used_by([*pytest, "-p", "no:evaltui", str(folder)])[0],
    )
    return Row("processor time that the plugin adds to pytest", with_it - without, most=0.01)


def cases_in_pytest(folder: Path) -> Row:
    agent = native_echo(folder)
    write_set(agent, cases=2000)
    (folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
    pytest = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), "-p", "no:cacheprovider"]
    ours, theirs = medians(
        3,
        lambda: seconds_of([*pytest, "--evaltui", str(agent)]),
        lambda: (
            seconds_of([*EVALTUI, "run", str(agent)]) + seconds_of([*pytest, str(folder / "test_nothing.py")])
        ),
    )
    return Row(
        "2,000 native cases, pytest / evaltui run and an empty session of pytest", ours, theirs, bar=1.2
    )


BENCHMARKS = {
    "save": save_to_verdict,
    "again": run_again,
    "adk-cold": one_adk_case_cold,
    "native-cold": one_native_case_cold,
    "promptfoo": one_native_case_and_promptfoo,
    "traces": recorded_traces_and_agentevals,
    "thousand": thousand_adk_cases,
    "cluster": four_workers,
    "overhead": runner_overhead,
    "calls": case_with_calls,
    "first-frame": first_frame,
    "ten-thousand": ten_thousand_cases,
    "hundred-thousand-list": hundred_thousand_in_list,
    "large-edits": large_edits,
    "hundred-thousand": hundred_thousand_cases,
    "rescore": rescore,
    "gaps": gaps,
    "accept": accept,
    "html-report": html_report,
    "pytest": cases_in_pytest,
    "plugin": loaded_plugin,
}


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    rows: list[Row] = []
    # A process that is ending may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as bytecode:
        # What an installer compiles is compiled, of both sides: the first run of each is not measured.
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for name in names:
            rows += _measured(name)
    print(table(rows))


def _beside(script: str) -> str:
    return str(Path(__file__).with_name(script))


def _measured(name: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        measured = BENCHMARKS[name](Path(folder))
    return measured if isinstance(measured, list) else [measured]


if __name__ == "__main__":
    main()
