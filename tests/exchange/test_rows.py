"""`evaltui import` of rows: the shapes of other tools, messages, cells, and the parts that are in no case."""

import asyncio
import json
from pathlib import Path

import pytest
from eval_data import make_turn

from evaltui import EvalCase, EvalConfig, Invocation, score_case
from tests.commands.command_line import call

USER, SENT = "Where is order 7?", "It was sent."
CALL = {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": '{"id": 7}'}}
CHAT = [
    {"role": "user", "content": USER},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "sent"}'},
    {"role": "assistant", "content": SENT},
]
ANTHROPIC = [
    {"role": "user", "content": USER},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "find_order", "input": {"id": 7}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '{"status": "sent"}'}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": SENT}]},
]
LANGCHAIN = [
    {"type": "human", "content": USER},
    {"type": "ai", "content": "", "tool_calls": [{"name": "find_order", "args": {"id": 7}, "id": "c1"}]},
    {"type": "tool", "content": '{"status": "sent"}', "tool_call_id": "c1"},
    {"type": "ai", "content": SENT},
]
LANGCHAIN_DICTS = [{"type": item["type"], "data": dict(item)} for item in LANGCHAIN]
GENAI = [
    {"role": "user", "parts": [{"text": USER}]},
    {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "find_order", "args": {"id": 7}}}]},
    {
        "role": "user",
        "parts": [{"functionResponse": {"id": "c1", "name": "find_order", "response": {"status": "sent"}}}],
    },
    {"role": "model", "parts": [{"text": SENT}]},
]
WHOLE = [(USER, [("find_order", {"id": 7})], SENT)]
TEXTS = [(USER, None, SENT)]

# The rows of a file, the proposed mapping as it is shown, and the turns of the only case.
SHAPES = {
    "OpenAI chat": ({"messages": CHAT}, "messages=messages", WHOLE),
    "Anthropic": ({"messages": ANTHROPIC}, "messages=messages", WHOLE),
    "LangChain": ({"messages": LANGCHAIN}, "messages=messages", WHOLE),
    "camel case": (
        {"messages": [CHAT[0], {"role": "assistant", "toolCalls": [CALL]}, *CHAT[2:]]},
        "messages=messages",
        WHOLE,
    ),
    "LangChain dicts": ({"messages": LANGCHAIN_DICTS}, "messages=messages", WHOLE),
    "genai": ({"messages": GENAI}, "messages=messages", WHOLE),
    "OpenAI, before tools": (
        {
            "messages": [
                CHAT[0],
                {"role": "assistant", "content": None, "function_call": CALL["function"]},
                {"role": "function", "name": "find_order", "content": '{"status": "sent"}'},
                CHAT[3],
            ]
        },
        "messages=messages",
        WHOLE,
    ),
    "LangSmith": (
        {"id": "e1", "inputs": {"question": USER}, "outputs": {"answer": SENT}},
        "user=inputs.question  expected=outputs.answer  id=id  (LangSmith)",
        TEXTS,
    ),
    "LangSmith messages": (
        {"inputs": {"messages": CHAT[:1]}, "outputs": {"messages": CHAT}},
        "messages=inputs.messages  expected=outputs.messages  (LangSmith)",
        WHOLE,
    ),
    "LangSmith trajectory": (
        {"inputs": {"question": USER}, "outputs": {"response": SENT, "trajectory": ["find_order"]}},
        "user=inputs.question  expected=outputs.response  calls=outputs.trajectory  (LangSmith)",
        [(USER, [("find_order", None)], SENT)],
    ),
    "Langfuse": (
        {"id": "e1", "status": "ACTIVE", "input": {"query": USER}, "expectedOutput": SENT},
        "user=input.query  expected=expectedOutput  id=id  (Langfuse)",
        TEXTS,
    ),
    "Langfuse messages": (
        {"input": CHAT[:1], "expectedOutput": CHAT[3]},
        "messages=input  expected=expectedOutput  (Langfuse)",
        TEXTS,
    ),
    "Phoenix": (
        {"id": "e1", "input": {"anything": USER}, "output": {"reply": SENT}},
        "user=input.anything  expected=output.reply  id=id  (Phoenix)",
        TEXTS,
    ),
    "Braintrust": (
        {"id": "e1", "input": USER, "expected": SENT, "tags": ["smoke"]},
        "user=input  expected=expected  id=id  tag=tags  (Braintrust)",
        TEXTS,
    ),
    "Braintrust without calls": (
        {"input": USER, "expected": SENT, "calls": []},
        "user=input  expected=expected  calls=calls  (Braintrust)",
        [(USER, [], SENT)],
    ),
    "OpenAI evals": (
        {"item": {"query": USER, "answer": SENT}},
        "user=item.query  expected=item.answer  (OpenAI evals)",
        TEXTS,
    ),
    "columns": ({"prompt": USER, "expected": SENT}, "user=prompt  expected=expected  (columns)", TEXTS),
    "Alpaca": ({"instruction": USER, "output": SENT}, "user=instruction  expected=output", TEXTS),
    "columns with calls": (
        {"prompt": USER, "calls": [{"name": "find_order", "args": {"id": 7}}], "expected": SENT},
        "user=prompt  expected=expected  calls=calls  (columns)",
        WHOLE,
    ),
    "columns without calls": (
        {"prompt": USER, "calls": [], "expected": SENT},
        "user=prompt  expected=expected  calls=calls  (columns)",
        [(USER, [], SENT)],
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, content):
    path = Path(name)
    text = content if isinstance(content, str) else "".join(f"{json.dumps(row)}\n" for row in content)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def bring(path, *words):
    return call("import", path, "--into", "s.evalset.json", *words)


def cases():
    return json.loads(Path("s.evalset.json").read_text(encoding="utf-8"))["eval_cases"]


def block():
    return json.loads(Path("test_config.json").read_text(encoding="utf-8"))["evaltui"]


def turns(case):
    return [
        (
            text_of(turn["user_content"]),
            calls_of(turn.get("intermediate_data")),
            text_of(turn.get("final_response")),
        )
        for turn in case["conversation"]
    ]


def text_of(content):
    return content and "\n".join(part["text"] for part in content["parts"])


def calls_of(data):
    if data is None:
        return None
    parts = [part for event in data.get("invocation_events", ()) for part in event["content"]["parts"]]
    uses = data.get("tool_uses") or [part["function_call"] for part in parts if "function_call" in part]
    return [(use["name"], use.get("args")) for use in uses]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_rows_of_a_known_shape_need_no_mapping(name, form, capsys):
    row, mapping, expected = SHAPES[name]
    path = write(f"rows.{form}", [row] if form == "jsonl" else json.dumps([row], indent=1))
    assert bring(path, "--yes") == 0
    shown = capsys.readouterr()
    assert mapping in shown.out
    assert "not taken" not in shown.err.replace("status: not taken: not mapped", "")
    assert [turns(case) for case in cases()] == [expected]
    assert call("lint", ".") == 0


REFERENCED = {
    "LangSmith": {
        "inputs": {"question": USER},
        "outputs": {"answer": "x", "tool_calls": ["x"]},
        "reference_outputs": {"answer": SENT},
    },
    "MLflow": {
        "inputs": {"question": USER},
        "outputs": "x",
        "expectations": {"expected_response": SENT, "guidelines": ["x"]},
    },
    "Opik": {"input": USER, "output": "x", "expected_output": SENT},
    "RAGAS": {"question": USER, "answer": "x", "contexts": ["x"], "ground_truths": [SENT]},
    **{
        name: {"question": USER, "response": "x", "answer": "x", name: SENT}
        for name in ("reference", "target", "ground_truth", "ideal", "correct_answer", "expected")
    },
}


@pytest.mark.parametrize("name", REFERENCED)
def test_a_reference_is_expected_rather_than_what_an_agent_answered(name):
    assert bring(write("r.jsonl", [REFERENCED[name]]), "--yes") == 0
    assert [turns(case) for case in cases()] == [TEXTS]


def test_expected_calls_are_expected_rather_than_those_of_an_agent():
    row = {"input": USER, "output": "x", "tool_calls": ["x"], "expected_tool_calls": ["find"]}
    assert bring(write("r.jsonl", [row]), "--yes") == 0
    assert turns(cases()[0])[0][1] == [("find", None)]


def test_results_have_the_names_of_their_calls_in_the_order_of_these():
    both = [{**CALL, "id": name} for name in ("a", "b")]
    results = [{"role": "tool", "tool_call_id": name, "content": f'"{name}"'} for name in ("b", "a")]
    messages = [CHAT[0], {"role": "assistant", "tool_calls": both}, *results, CHAT[3]]
    assert bring(write("rows.jsonl", [{"messages": messages}]), "--yes") == 0
    events = cases()[0]["conversation"][0]["intermediate_data"]["invocation_events"]
    results = [
        part["function_response"]
        for event in events
        for part in event["content"]["parts"][:1]
        if "function_response" in part
    ]
    assert results == [{"name": "find_order", "response": {"result": name}} for name in ("a", "b")]


CELLS = {
    "comma": "id,question,answer\nq1,Hi,Hello\n",
    "semicolon, BOM, CRLF": "\ufeffid;question;answer\r\nq1;Hi;Hello\r\n",
    "tab": "id\tquestion\tanswer\nq1\tHi\tHello\n",
    "quoted": 'id,question,answer\nq1,"Hi","Hello"\n',
    "delimiter in quotes": '"id","question","answer","a;b;c;d;e"\nq1,Hi,Hello,\n',
}


@pytest.mark.parametrize("name", CELLS)
def test_a_table_is_read_whatever_its_delimiter(name):
    assert bring(write("rows.csv", CELLS[name]), "--yes") == 0
    assert [(case["eval_id"], turns(case)) for case in cases()] == [("q1", [("Hi", None, "Hello")])]


def test_blank_lines_in_a_cell_separate_turns_and_json_in_cells_is_opened():
    rows = 'input,messages,calls\n"Hi\n\nHow are you?\nWell?",,"[{""name"": ""f"", ""args"": {""a"": 1}}]"\n'
    assert bring(write("rows.csv", rows), "--yes", "--map", "user=input") == 0
    assert turns(cases()[0]) == [("Hi", None, None), ("How are you?\nWell?", [("f", {"a": 1})], None)]
    langfuse = 'id,input,expectedOutput\ne,"{""query"": ""Hi""}","{""answer"": ""Yes""}"\n'
    assert call("import", write("langfuse.csv", langfuse), "--into", "t.evalset.json", "--yes") == 0
    case = json.loads(Path("t.evalset.json").read_text(encoding="utf-8"))["eval_cases"][0]
    assert turns(case) == [("Hi", None, "Yes")]


def test_a_name_alone_lets_arguments_differ_and_state_and_tags_are_kept():
    row = {"q": USER, "tools": "find_order", "start": {"user": "Ann"}, "kind": "a b", "level": 3, "n": "k"}
    fields = ["user=q", "calls=tools", "state=start", "tag=kind", "tag=level", "id=n"]
    assert bring(write("r.jsonl", [row]), "--yes", *(word for one in fields for word in ("--map", one))) == 0
    assert turns(cases()[0]) == [(USER, [("find_order", None)], None)]
    assert cases()[0]["session_input"]["state"] == {"user": "Ann"}
    names = {"set": "s", "case": "k"}
    assert block()["rules"] == [{"tool": "find_order", "arg": "*", "match": "ignore", **names}]
    assert block()["tags"] == [{**names, "tags": ["a", "b", "3"]}]


# A row, and the lines that name what is not taken.
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
NOT_TAKEN = {
    "member": ({"prompt": USER, "cost": 3, "empty": ""}, ["r.jsonl:1: cost: not taken: not mapped"]),
    "inner member": (
        {"inputs": {"question": USER, "lang": "en"}, "outputs": {"answer": SENT}},
        ["r.jsonl:1: inputs.lang: not taken: not mapped"],
    ),
    "system message": (
        {"messages": [{"role": "system", "content": "Be nice."}, *CHAT]},
        ["r.jsonl:1: messages[0]: not taken: a system message: the agent has its own instruction"],
    ),
    "attachment": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": USER}, IMAGE]}]},
        ["r.jsonl:1: messages[0].content[1]: not taken: not a text, call or result that a case can hold"],
    ),
    "unknown role": (
        {"messages": [CHAT[0], {"role": "asistant", "content": SENT}]},
        ["r.jsonl:1: messages[1].role: not taken: 'asistant' is no known role. Did you mean assistant?"],
    ),
    "no role": (
        {"messages": [CHAT[0], {"rle": "assistant", "content": SENT}]},
        ["r.jsonl:1: messages[1]: not taken: a message without a role among others with one"],
    ),
    "misspelt keys": (
        {"messages": [CHAT[0], {"role": "assistant", "content": SENT, "tol_calls": [{"function": {}}]}]},
        ["r.jsonl:1: messages[1].tol_calls: not taken: unknown key. Did you mean tool_calls?"],
    ),
    "calls of another type": (
        {"messages": [CHAT[0], {"role": "assistant", "content": SENT, "tool_calls": {"name": "find"}}]},
        ["r.jsonl:1: messages[1].tool_calls: not taken: must be a list, is an object"],
    ),
    "content of another type": (
        {"messages": [CHAT[0], {"role": "assistant", "content": 5}]},
        ["r.jsonl:1: messages[1].content: not taken: not one that can be read: the number 5"],
    ),
    "first response": (
        {"messages": [CHAT[0], CHAT[3], CHAT[3]]},
        ["r.jsonl:1: messages: not taken: turn 1 has several responses; the last one is expected"],
    ),
    "greeting": (
        {"messages": [CHAT[3], CHAT[0]]},
        ["r.jsonl:1: messages[0]: not taken: before the first message of the user"],
    ),
    "expected object": (
        {"prompt": USER, "expected": {"a": 1, "b": 2}},
        [
            "r.jsonl:1: expected: not taken: the expected response is an object; choose the text with --map "
            "expected=PATH"
        ],
    ),
    "call": (
        {"prompt": USER, "calls": [3]},
        [
            "r.jsonl:1: calls[0]: not taken: a call must be a name or an object with name and args, is the "
            "number 3"
        ],
    ),
    "arguments by another name": (
        {"prompt": USER, "calls": [{"name": "find", "kwargs": {"q": 1}}]},
        ["r.jsonl:1: calls[0].kwargs: not taken: not read as arguments, which must be args or arguments"],
    ),
    "arguments beside a name alone": (
        {"prompt": USER, "calls": ["find", {"name": "find", "args": {"q": 1}}]},
        [
            "r.jsonl:1: calls: not taken: further arguments of find pass, as another expected call of it "
            "states none"
        ],
    ),
    "unreadable arguments": (
        {
            "messages": [
                CHAT[0],
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
            ]
        },
        ["r.jsonl:1: messages[1].tool_calls[0].arguments: not taken: not read as arguments"],
    ),
    "call of a custom tool": (
        {
            "messages": [
                CHAT[0],
                {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "f"}}]},
            ]
        },
        ["r.jsonl:1: messages[1].tool_calls[0]: not taken: not a call that can be read"],
    ),
    "a list that nothing reads": (
        {"messages": [CHAT[0], {**CHAT[3], "toolInvocations": [{"toolName": "f", "args": {}}]}]},
        ["r.jsonl:1: messages[1].toolInvocations: not taken: not expected"],
    ),
    "arguments of Anthropic": (
        {"messages": [CHAT[0], {**ANTHROPIC[1], "content": [{**ANTHROPIC[1]["content"][0], "input": "x"}]}]},
        ["r.jsonl:1: messages[1].content[0].input: not taken: not read as arguments"],
    ),
    "a result of no call": (
        {"messages": [*CHAT[:2], {**CHAT[2], "tool_call_id": "c2"}, CHAT[3]]},
        ["r.jsonl:1: messages[2]: not taken: a result of no call"],
    ),
    "refusal": (
        {"messages": [CHAT[0], {"role": "assistant", "content": None, "refusal": "No."}]},
        ["r.jsonl:1: messages[1].refusal: not taken: not expected"],
    ),
    "earlier responses": (
        {"inputs": {"question": USER}, "outputs": {"messages": [CHAT[0], CHAT[3], CHAT[0], CHAT[3]]}},
        ["r.jsonl:1: outputs.messages: not taken: messages before the last one of the user"],
    ),
    "tag": (
        {"prompt": USER, "tags": ["a?"]},
        [
            "r.jsonl:1: tags: not taken: the tag 'a?' must have no space, comma, \", #, * or ?, and must not "
            "begin with -"
        ],
    ),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_parts_that_are_not_taken_are_named_and_strict_writes_nothing(name, capsys):
    row, lines = NOT_TAKEN[name]
    path = write("r.jsonl", [row])
    assert bring(path, "--strict", "--yes") == 1
    assert not Path("s.evalset.json").exists()
    assert not Path("test_config.json").exists()
    *named, last = capsys.readouterr().err.splitlines()
    assert named == [f"evaltui import: {line}" for line in lines]
    assert last == "evaltui import: nothing written: 1 part not taken (--strict)"
    assert bring(path, "--yes") == 0


@pytest.mark.parametrize("place", ["s.evalset.json", "other.evalset.json"])
def test_a_new_config_takes_no_criterion_from_cases_that_were_there(place, capsys):
    Path("agent.py").write_text("def root_agent(message, session):\n    return 'Hi'\n")
    case = {"eval_id": "old", "conversation": [{"user_content": {"role": "user", "parts": [{"text": "a"}]}}]}
    case["conversation"][0]["intermediate_data"] = {"tool_uses": [{"name": "find", "args": {}}]}
    case["conversation"][0]["final_response"] = {"role": "model", "parts": [{"text": "Hi"}]}
    write(place, json.dumps({"eval_set_id": place.partition(".")[0], "eval_cases": [case]}))
    assert call("run", ".") == 1
    capsys.readouterr()
    assert bring(write("r.jsonl", [{"id": "new", "question": "b", "expected": "Hi"}]), "--yes") == 0
    assert ("scores other.evalset.json, too" in capsys.readouterr().out) is (place != "s.evalset.json")
    assert call("run", ".") == 1
    verdicts = [line[:5] for line in capsys.readouterr().out.splitlines() if line.startswith(("✗", "✓"))]
    assert verdicts == ["✗ old", "✓ new"]


def test_a_cell_may_list_a_response_for_each_turn(capsys):
    path = write("r.csv", 'user,expected,calls\n"a\n\nb","[""x"", ""y""]","[[""f""]"\n')
    assert bring(path, "--yes") == 0
    assert "r.csv:2: calls: not taken: not valid JSON" in capsys.readouterr().err
    texts = [turn["final_response"]["parts"][0]["text"] for turn in cases()[0]["conversation"]]
    assert texts == ["x", "y"]


@pytest.mark.parametrize(("args", "code"), [({"q": "x"}, 0), ({"q": "y"}, 1)])
def test_a_name_alone_takes_no_arguments_from_another_call(args, code, capsys):
    Path("agent.py").write_text(
        "from evaltui import Agent, Rule, ScriptedModel\n\n\ndef find(q: str):\n    return 1\n\n\n"
        "root_agent = Agent(name='a', model=ScriptedModel([Rule(user='.', call=('find', {'q': 'x'})), "
        "Rule(after_tool='find', reply='ok')]), tools=[find])\n"
    )
    path = write("r.jsonl", [{"prompt": ["a", "b"], "calls": [["find"], [{"name": "find", "args": args}]]}])
    assert bring(path, "--map", "user=prompt", "--yes") == 0
    assert call("run", ".") == code, capsys.readouterr()


def test_rows_that_are_no_cases_are_named(capsys):
    rows = [
        {"id": "a", "input": USER, "expectedOutput": SENT},
        {"id": "a", "input": "Again", "expectedOutput": SENT},
        {"id": "b", "input": "Old", "expectedOutput": SENT, "status": "ARCHIVED"},
        {"id": "c", "input": None, "expectedOutput": SENT},
    ]
    assert bring(write("r.jsonl", rows), "--yes") == 0
    assert capsys.readouterr().err.splitlines()[:3] == [
        "evaltui import: r.jsonl:2: not taken: the id 'a' is that of r.jsonl:1; give each row an id of its "
        "own",
        "evaltui import: r.jsonl:3: not taken: archived",
        "evaltui import: r.jsonl:4: not taken: no message of the user",
    ]
    assert [case["eval_id"] for case in cases()] == ["a"]


# Name and content of a file, further words, and the error.
REFUSED = {
    "no message": ("r.jsonl", '{"a": {"b": 1}}\n', ["--map", "id=a.b"], "--map user=PATH. Members: a.b"),
    "wrong path": (
        "r.csv",
        "question\nHi\n",
        ["--map", "user=qestion"],
        "user=qestion is in no row. Did you mean question?",
    ),
    "wrong field": (
        "r.csv",
        "question\nHi\n",
        ["--map", "usr=question"],
        "--map: no field 'usr'. Did you mean user?",
    ),
    "no mapping": ("r.csv", "question\nHi\n", ["--map", "question"], "is not FIELD=PATH"),
    "not JSON": ("r.jsonl", '{"prompt": "a"}\n{"prompt": \n', [], "r.jsonl:2: not valid JSON"),
    "no object": (
        "r.jsonl",
        '{"prompt": "a"}\n3\n',
        [],
        "r.jsonl:2: a row must be an object, is the number 3",
    ),
    "no rows": ("r.csv", "question,answer\n", [], "r.csv: has no rows"),
    "columns": ("r.csv", "question,question\na,b\n", [], "r.csv:1: two columns have the name 'question'"),
    "not UTF-8": ("r.csv", None, [], "r.csv:2: not UTF-8"),
    "quotes": ("r.csv", 'question\n"Hi\n', [], "r.csv:2: not valid CSV"),
    "traces only": ("r.csv", "question\nHi\n", ["--case", "x"], "--case is for traces only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_without_cases_is_refused_with_its_place(name, capsys):
    file, content, words, error = REFUSED[name]
    path = Path(file)
    path.write_bytes(b"question\n\xff\n" if content is None else content.encode())
    assert bring(path, "--yes", *words) == 2
    assert error in capsys.readouterr().err
    assert not Path("s.evalset.json").exists()


def test_without_a_terminal_five_cases_are_shown_and_nothing_is_written(capsys):
    rows = [{"prompt": f"Question {number}", "expected": "Yes"} for number in range(7)]
    assert bring(write("r.jsonl", rows)) == 2
    shown = capsys.readouterr()
    assert shown.out.count("Question") == 5
    assert "  and 2 more cases\n" in shown.out
    assert "without a terminal, --yes imports" in shown.err
    assert not Path("s.evalset.json").exists()


# Columns of two rows, whether the config exists, and the status of both cases of an agent that says Hi.
VERDICTS = {
    "responses": ("q,expected\na,Hi\nb,No\n", False, ["PASSED", "FAILED"]),
    "one response": ("q,expected\na,Hi\nb,\n", False, ["PASSED", "NOT_EVALUATED"]),
    "calls": ("q,calls\na,[]\nb,find\n", False, ["PASSED", "FAILED"]),
    "both, not in each": ("q,calls,expected\na,[],\nb,,Hi\n", False, ["PASSED", "PASSED"]),
    "nothing": ("q,n\na,1\nb,2\n", False, ["NOT_EVALUATED", "NOT_EVALUATED"]),
    "criteria of others": ("q,expected\na,Hi\nb,No\n", True, ["PASSED", "FAILED"]),
}


def test_a_row_with_calls_does_not_pass_where_they_are_unknown():
    rows = write("rows.csv", "id,q,calls,expected\na,a,find,Hi\nb,b,,Hi\n")
    assert bring(rows, "--yes", "--map", "user=q") == 0
    data = json.loads(Path("s.evalset.json").read_text(encoding="utf-8"))
    config = EvalConfig.model_validate(json.loads(Path("test_config.json").read_text(encoding="utf-8")))
    statuses = []
    for case in map(EvalCase.model_validate, data["eval_cases"]):
        turn = Invocation.model_validate(make_turn(case.eval_id, "Hi"))
        statuses.append(asyncio.run(score_case(case, [turn], config, eval_set_id="s")).status.name)
    assert statuses == ["NOT_EVALUATED", "PASSED"]


@pytest.mark.parametrize("name", VERDICTS)
def test_cases_are_scored_by_what_their_rows_state(name):
    rows, has_config, statuses = VERDICTS[name]
    write("agent.py", "def root_agent(message, session):\n    return 'Hi'\n")
    if has_config:
        write(
            "test_config.json",
            json.dumps({"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}),
        )
    assert bring(write("rows.csv", rows), "--yes", "--map", "user=q") == 0
    call("run", ".", "--report", "json=report.json")
    assert [
        case["status"] for case in json.loads(Path("report.json").read_text(encoding="utf-8"))["cases"]
    ] == statuses


def test_a_metric_that_no_row_has_a_part_for_is_not_passed_where_it_is_required(capsys):
    write("agent.py", "def root_agent(message, session):\n    return 'Hi'\n")
    criteria = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    write("test_config.json", json.dumps({"criteria": criteria}))
    assert bring(write("rows.csv", "q,expected\na,Hi\n"), "--yes", "--map", "user=q") == 0
    capsys.readouterr()
    assert call("run", ".", "--require", "tool_trajectory_avg_score") == 2
    assert "no case has expected calls, and none has to" in capsys.readouterr().err
