"""`evaltui export`: a run to a file and to an endpoint, which evaltui and agentevals read."""

import json
import os
import sqlite3
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree

import pytest

from evaltui.traces.writing.otlp import otlp_json
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set

AGENT = """
    from evaltui.events import text, tool_call, tool_result

    def root_agent(message, session):
        if message == "raise":
            raise ValueError("not today")
        yield tool_call("find", {"what": message}, id="c1")
        yield tool_result("find", {"found": message, "key": "sk-very-secret-value"}, id="c1")
        session.state.update(last=message, key="sk-very-secret-value")
        yield text("Found \\ud83d half.") if message == "half" else text(f"Found {message}.")
"""


def turn(user, answer, what):
    calls = [{"name": "find", "args": {"what": what}}]
    return make_turn(user, answer, calls=calls)


@pytest.fixture
def run(write_agent, monkeypatch):
    """The folder of an agent with a run."""
    folder = write_agent(AGENT, name="shop")
    (folder / ".env").write_text("SHOP_API_KEY=sk-very-secret-value\n")
    cases = {
        "good": [turn("lamp", "Found lamp.", "lamp"), turn("rug", "Found rug.", "rug")],
        "bad": [turn("lamp", "Found lamp.", "rug")],
        "raises": [turn("lamp", "Found lamp.", "lamp"), turn("raise", "", "x")],
    }
    write_eval_set(folder, "shop", *(make_case(eval_id, *turns) for eval_id, turns in cases.items()))
    monkeypatch.chdir(folder)
    assert call("run", ".") == 1
    return folder


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append((self.path, dict(self.headers), json.loads(body)))
        status, answer = self.server.answers[min(len(self.server.taken), len(self.server.answers)) - 1]
        self.send_response(status)
        # Without a wait, or with one that nobody waits for.
        self.send_header("Retry-After", "0" if "later" not in answer else "3600")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.taken, server.answers = [], [(200, {})]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_exported_run_is_scored_as_it_was(run, capsys):
    """The session state included, secrets in it, too; a trace that has none says unknown, not null."""
    document = json.loads(Path("shop.evalset.json").read_text())
    for case, last in zip(document["eval_cases"], ("rug", "sofa"), strict=False):
        case["final_session_state"] = {"last": last, "key": "sk-very-secret-value"}
    Path("shop.evalset.json").write_text(json.dumps(document))
    assert call("run", ".", "--report", "json=run.report.json") == 1
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    ran = verdicts("run.report.json")
    assert [ran[case][0] for case in ("good", "bad", "raises")] == ["PASSED", "FAILED", "ERROR"]
    assert scored("run.json") == ran

    text = Path("run.json").read_text().replace("evaltui.final_session_state", "other")
    Path("run.json").write_text(text)
    capsys.readouterr()
    assert scored("run.json")["good"] == ("NOT_EVALUATED", {**ran["good"][1], STATE: (None, "NOT_EVALUATED")})
    shown = capsys.readouterr().out
    assert "final session state is unknown" in shown
    assert "null" not in shown
    assert "final state" not in shown


def test_an_error_is_of_the_turn_that_raised_whatever_the_case_expects_after_it(run, capsys):
    turns = [turn("lamp", "Found lamp.", "lamp"), turn("raise", "", "x"), turn("rug", "Found rug.", "rug")]
    write_eval_set(run, "shop", make_case("raises", *turns))
    told = []
    for words in (("run", "."), ("score", "run.json", "--home", ".")):
        capsys.readouterr()
        assert call(*words) == 3
        told += [line for line in capsys.readouterr().out.splitlines() if line.startswith("! raises")]
        assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    assert ["turn 2: " in line and "ValueError: not today" in line for line in told] == [True, True], told


def test_a_case_that_is_imported_from_an_export_begins_as_it_did(write_agent, monkeypatch, capsys):
    folder = write_agent("""
        def root_agent(message, session):
            return f"{session.state['color']} for {session.user_id}"
    """)
    session = {"appName": "shop", "userId": "ann", "state": {"color": "red", "key": "sk-very-secret-value"}}
    (folder / ".env").write_text("SHOP_API_KEY=sk-very-secret-value\n")
    write_eval_set(folder, "shop", make_case("a", make_turn("hi", "red for ann"), session_input=session))
    monkeypatch.chdir(folder)
    assert call("run", ".") == 0
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    assert "sk-very-secret-value" not in Path("run.json").read_text()
    assert call("import", "run.json", "--into", "again.evalset.json") == 0
    assert call("run", ".", "again") == 0
    (case,) = json.loads(Path("again.evalset.json").read_text())["eval_cases"]
    assert (case["session_input"]["user_id"], case["session_input"]["state"]["color"]) == ("ann", "red")


def test_a_run_without_an_initial_state_began_with_none(write_agent, monkeypatch, capsys):
    folder = write_agent("""
        def root_agent(message, session):
            session.state["said"] = [*session.state.get("said", ()), message]
            return " ".join(session.state["said"])
    """)
    state = {"user_id": "ann", "app_name": "shop", "state": {"said": ["hey"]}}
    cases = [
        make_case("a", make_turn("hi", "hi"), make_turn("ho", "hi ho")),
        make_case("b", make_turn("hi", "hey hi"), session_input=state),
    ]
    write_eval_set(folder, "shop", *cases)
    monkeypatch.chdir(folder)
    assert call("run", ".") == 0
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    capsys.readouterr()
    assert call("inspect", "run.json", "--format", "json") == 0
    held = json.loads(capsys.readouterr().out)["conversations"]
    assert [one["session"]["state"] for one in held] == [{}, {"said": ["hey"]}]
    words = ("--into", "again.evalset.json", "--turns", "2", "--conversation", held[0]["id"])
    assert call("import", "run.json", *words) == 0
    assert "initial state" not in capsys.readouterr().out
    assert call("run", ".", "again") == 0


@pytest.mark.parametrize("is_own", [True, False])
def test_a_span_that_was_exported_before_it_ended_counts_as_it_ended(run, is_own):
    """Whatever came first: what a turn ended with is known at its end only."""
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    ended = json.loads(Path("run.json").read_text())
    for one in spans_of(ended):
        if not is_own:
            one["attributes"] = [said for said in one["attributes"] if "evaltui" not in said["key"]]
    early = json.loads(json.dumps(ended))
    for one in spans_of(early):
        one |= {"endTimeUnixNano": one["startTimeUnixNano"], "status": {}, "events": []}
    verdicts = []
    for resources in ([ended], [early, ended], [ended, early]):
        document = {"resourceSpans": [group for one in resources for group in one["resourceSpans"]]}
        Path("twice.json").write_text(json.dumps(document))
        verdicts.append(scored("twice.json"))
    assert {case: status for case, (status, _) in verdicts[0].items()}["raises"] == "ERROR"
    assert verdicts[1:] == verdicts[:1] * 2


def spans_of(document):
    groups = (scope for group in document["resourceSpans"] for scope in group["scopeSpans"])
    return [one for group in groups for one in group["spans"]]


def test_a_case_without_a_result_is_no_conversation(run, capsys):
    """What it said until the run was interrupted would be scored as all it had to say."""
    case = "SELECT id FROM cases WHERE eval_id = 'good'"
    (path,) = Path(".evaltui/runs").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"DELETE FROM repeats WHERE case_id = ({case})")
        db.execute("UPDATE cases SET status = NULL, runs = NULL, policy_met = NULL WHERE eval_id = 'good'")
        db.execute("UPDATE run SET status = NULL")
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    assert "1 case without a result or turns left out: good" in capsys.readouterr().err
    assert call("score", "run.json", "--home", ".", "--report", "json=run.report.json") == 1
    assert verdicts("run.report.json")["good"][0] == "NOT_EVALUATED"


def test_a_dataset_has_no_conversation_that_ended_with_an_error(run, capsys):
    """It has no place for the error: what the agent did until then would be scored as all it did."""
    words = ("export", ".", "--run", "last", "--format", "dataset", "-o", "run.json")
    assert call(*words, "--strict") == 1
    assert not Path("run.json").exists()
    assert call(*words) == 0
    assert "1 case without a complete result left out: raises" in capsys.readouterr().err
    assert [case["eval_case_id"] for case in json.loads(Path("run.json").read_text())["eval_cases"]] == [
        "good",
        "bad",
    ]


def test_cases_and_repeats_that_ended_before_their_first_turn_are_named(run, capsys):
    assert call("run", ".", "--runs", "2") == 1
    capsys.readouterr()
    failure = json.dumps({"kind": "error", "data": {"type": "AgentLoadError", "message": "no field"}})
    of = "(SELECT id FROM cases WHERE eval_id = '{}')".format
    with closing(sqlite3.connect(max(Path(".evaltui/runs").glob("*.sqlite")))) as db, db:
        db.execute(f"DELETE FROM events WHERE case_id = {of('good')} AND repeat = 1")
        db.execute(f"DELETE FROM events WHERE case_id = {of('bad')} AND kind != 'user'")
        db.execute(
            f"UPDATE events SET kind = 'error', event = ? WHERE case_id = {of('bad')}",
            [failure],
        )
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    printed = capsys.readouterr().err
    assert "run.json: 3 conversations" in printed
    assert "2 cases without a result or turns left out: good (repeat 2), bad" in printed


def test_cases_of_one_id_and_message_are_told_apart_by_their_sets(run, capsys):
    expected = {"shop": "lamp", "other": "rug"}
    for eval_set_id, what in expected.items():
        cases = [make_case("good", turn("lamp", "Found lamp.", what))]
        write_eval_set(run, eval_set_id, *cases)
    call("run", ".")
    assert call("export", "--run", "last", "-o", "twins.json") == 0

    def scored(*sets):
        call("score", "twins.json", "--sets", *sets, "--report", "json=r.json")
        cases = json.loads((run / "r.json").read_text())["cases"]
        return {case["eval_set_id"]: (case["status"], len(case["repeats"])) for case in cases}

    assert scored(".") == {"shop": ("PASSED", 1), "other": ("FAILED", 1)}
    capsys.readouterr()
    # That of the other set is no repeat of the case.
    assert scored("shop.evalset.json") == {"shop": ("PASSED", 1)}
    assert "the trace names set other" in capsys.readouterr().out
    # Of a set that was renamed, the name of the case decides.
    renamed = json.loads((run / "shop.evalset.json").read_text()) | {"eval_set_id": "renamed"}
    (run / "shop.evalset.json").write_text(json.dumps(renamed))
    (run / "other.evalset.json").unlink()
    assert scored("shop.evalset.json")["renamed"][1] == 2


def test_a_run_with_half_of_a_surrogate_pair_is_scored_and_read_again(run):
    cases = {"half": [turn("half", "Found half.", "half")], "bad": [turn("half", "No.", "rug")]}
    document = {
        "eval_set_id": "shop",
        "eval_cases": [make_case(eval_id, *turns) for eval_id, turns in cases.items()],
    }
    Path("shop.evalset.json").write_text(json.dumps(document))
    assert call("run", ".", "--report", "json=run.report.json") == 1
    ran = verdicts("run.report.json")
    assert [ran[case][0] for case in ("half", "bad")] == ["PASSED", "FAILED"]
    assert call("report", "last", "--report", "json=stored.json") == 0
    assert verdicts("stored.json") == ran
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    assert scored("run.json") == ran


STATE = "final_session_state"


def scored(trace):
    call("score", trace, "--sets", "shop.evalset.json", "--report", "json=score.json", "--report", "console")
    return verdicts("score.json")


def verdicts(report):
    """Of each case its status, and the score and status of each metric that has a verdict."""
    return {
        case["eval_id"]: (
            case["status"],
            {
                one["name"]: (one["score"], one["status"])
                for one in case["metrics"]
                if one["status"] != "INFORMATIONAL"
            },
        )
        for case in json.loads(Path(report).read_text())["cases"]
    }


def test_a_run_is_exported_to_a_file_and_to_an_endpoint(run, endpoint, monkeypatch, capsys):
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    text = Path("run.json").read_text()
    assert "sk-very-secret-value" not in text
    groups = json.loads(text)["resourceSpans"]
    assert len(groups) == 3
    capsys.readouterr()

    # What it says is scored as the run was, and what ended a turn is seen.
    assert call("inspect", "run.json", "--format", "json") == 0
    found = {one["case"]: one["turns"] for one in json.loads(capsys.readouterr().out)["conversations"]}
    assert [len(found[case]) for case in ("good", "bad", "raises")] == [2, 1, 2]
    assert found["raises"][1]["error"] == {"type": "ValueError", "message": "not today"}
    assert found["good"][0]["calls"] == [{"name": "find", "args": {"what": "lamp"}}]
    assert results_of(groups) == {("good", "pass"): 2, ("bad", "fail"): 1}

    # The same to an endpoint, with the headers of the environment; stdout is a file, too.
    url = f"http://127.0.0.1:{endpoint.server_port}/otel/"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc,x-scope = 1")
    assert call("export", ".", "--run", "last", "--endpoint", url) == 0
    assert [one["resourceSpans"][0] for _, _, one in endpoint.taken] == groups
    path, headers, _ = endpoint.taken[0]
    lower = {name.lower(): value for name, value in headers.items()}
    assert (path, lower["authorization"], lower["x-scope"]) == ("/otel/v1/traces", "Bearer abc", "1")
    assert lower["content-type"] == "application/json"
    capsys.readouterr()
    assert call("export", ".", "--run", "last", "-o", "-") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(text)

    # What is not accepted is said, with what was; a header is not repeated, since it may be a secret.
    partial = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}
    remark = {"partialSuccess": {"errorMessage": "upgrade soon"}}
    first, second, third = (len(group["scopeSpans"][0]["spans"]) for group in groups)
    rejected = (
        f"2 of {second} spans rejected: too old",
        f"2 conversations, {first + second + third - 2} spans",
    )
    one = f"1 conversation, {first} spans accepted"
    for answers, code, requests, complaints in (
        ([(200, {}), (200, partial), (200, {})], 3, 3, ("/shop.evalset.json/bad: ", *rejected)),
        ([(200, {}), (413, {}), (200, {})], 3, 3, (": 413 Request Entity Too Large", "2 conversations, ")),
        ([(401, {"message": "who are you"})], 3, 1, (": 401", "0 conversations, 0 spans accepted")),
        ([(200, {}), (500, {})], 3, 2, (": 500", one)),
        (
            [(429, {}), (503, {}), (200, remark)],
            0,
            5,
            (": 429", ": 503", "upgrade soon", "3 conversations, "),
        ),
        ([(200, {}), (503, {})], 3, 6, ("503 Service Unavailable", one)),
        ([(503, {"later": True})], 3, 1, (": 503", "0 conversations, 0 spans accepted")),
    ):
        endpoint.taken.clear()
        endpoint.answers = answers
        assert call("export", ".", "--run", "last", "--endpoint", url) == code
        said = capsys.readouterr().err
        assert len(endpoint.taken) == requests
        for complaint in complaints:
            assert complaint in said
        assert "abc" not in said
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
    for words, complaint in (
        (("--run", "last", "--endpoint", url), "OTEL_EXPORTER_OTLP_HEADERS: header 1 is not NAME=VALUE"),
        (("--run", "last", "--endpoint", "localhost:4318"), "is not a URL"),
        (("--run", "nothing", "-o", "x.json"), "has no run 'nothing'"),
        (("--run", "last", "-o", "nowhere/x.json"), "the folder nowhere does not exist"),
    ):
        assert call("export", ".", *words) == 2
        assert complaint in capsys.readouterr().err
    assert sorted(path.name for path in Path().glob("*.json")) == ["run.json", "shop.evalset.json"]


def test_a_file_gets_all_of_a_run_or_stays_as_it_was(run, monkeypatch, capsys):
    kept, link, sink = Path("kept.json"), Path("link.json"), Path("sink")
    kept.write_text("before")
    kept.chmod(0o640)
    link.symlink_to(kept)

    written = []

    def damaged(groups, version):
        written.append(otlp_json(groups, version))
        if len(written) > 1:
            raise ValueError("the log is damaged")
        return written[0]

    with monkeypatch.context() as patched:
        patched.setattr("evaltui.commands.export.otlp_json", damaged)
        assert call("export", ".", "--run", "last", "-o", link) == 2
    assert kept.read_text() == "before"
    assert call("export", ".", "--run", "last", "-o", link) == 0
    assert (link.is_symlink(), kept.stat().st_mode & 0o777) == (True, 0o640)
    assert len(json.loads(kept.read_text())["resourceSpans"]) == 3
    # Nothing takes the place of a device or a pipe.
    os.mkfifo(sink)
    found = []
    reader = threading.Thread(target=lambda: found.append(sink.read_text()))
    reader.start()
    assert call("export", ".", "--run", "last", "-o", sink) == 0
    reader.join()
    assert (sink.is_fifo(), found) == (True, [kept.read_text()])
    assert not list(Path().glob(".*.part"))
    capsys.readouterr()

    # Nothing to export is no export.
    Path("empty.evalset.json").write_text(json.dumps({"eval_set_id": "e", "eval_cases": [EMPTY]}))
    call("run", ".", "empty.evalset.json")
    capsys.readouterr()
    assert call("export", ".", "--run", "last", "-o", kept) == 2
    assert "has no conversation to export" in capsys.readouterr().err
    assert len(json.loads(kept.read_text())["resourceSpans"]) == 3
    call("run", ".", "empty.evalset.json", "shop.evalset.json:good")
    capsys.readouterr()
    assert call("export", ".", "--run", "last", "-o", kept) == 0
    assert "1 case without a result or turns left out: empty" in capsys.readouterr().err
    assert len(json.loads(kept.read_text())["resourceSpans"]) == 1


EMPTY = make_case("empty")


def results_of(groups):
    """How many turns of each case got each label for their calls."""
    found = {}
    for group in groups:
        for span in group["scopeSpans"][0]["spans"]:
            said = values(span["attributes"])
            for event in span["events"]:
                if event["name"] != "gen_ai.evaluation.result":
                    continue
                result = values(event["attributes"])
                if result["gen_ai.evaluation.name"] == "tool_trajectory_avg_score":
                    key = said["evaltui.eval.case.id"], result["gen_ai.evaluation.score.label"]
                    found[key] = found.get(key, 0) + 1
    return found


def values(attributes):
    return {one["key"]: next(iter(one["value"].values())) for one in attributes}


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.adk
def test_agentevals_reads_it_with_the_verdicts_of_the_run(tmp_path, monkeypatch, agentevals):
    folder = tmp_path / "travel_desk"
    copytree(Path(__file__).parents[2] / "sample_agents" / "travel_desk", folder)
    monkeypatch.chdir(folder)
    call("run", ".", "--report", "json=report.json")
    assert call("export", ".", "--run", "last", "-o", "run.json") == 0
    metrics = ("tool_trajectory_avg_score", "response_match_score")
    theirs = agentevals.verdicts(["run.json"], "travel_desk.evalset.json", metrics, 0.8)
    ours = {
        case["eval_id"]: {
            one["name"]: (one["score"], one["status"]) for one in case["metrics"] if one["name"] in metrics
        }
        for case in json.loads(Path("report.json").read_text())["cases"]
    }
    # It scores calls that are made inside a call of an agent; google-adk and evaltui do not.
    inner = [*ours].index("asks_the_guide")
    assert theirs[inner]["tool_trajectory_avg_score"] == (0.0, "FAILED")
    theirs[inner]["tool_trajectory_avg_score"] = (1.0, "PASSED")
    assert theirs == list(ours.values())
