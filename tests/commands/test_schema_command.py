import json
from pathlib import Path

import pytest
from check_jsonschema import main as check_jsonschema
from command_line import call

AGENT = '''\
from evaltui import Agent

def find(state: str, most: int = 3) -> list:
    """Finds orders."""
    return []

print("imported")
root_agent = Agent(name="desk", model="gemini-2.5-flash", tools=[find])
'''


@pytest.mark.parametrize("kind", ["evalset", "config", "report", "matrix", "events"])
def test_each_schema_is_one_for_validators_of_any_language(kind, tmp_path, capsys):
    """Also its patterns, which JavaScript reads otherwise than Python."""
    assert call("schema", kind) == 0
    file = tmp_path / "schema.json"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert not check_jsonschema(["--check-metaschema", str(file)], standalone_mode=False)


def test_the_tools_of_an_agent(tmp_path, capfd):
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    assert call("schema", "evalset", "--agent", tmp_path) == 0
    out, err = capfd.readouterr()
    assert "imported" in err
    [find] = json.loads(out)["definitions"]["FunctionCall"]["allOf"]
    assert find["if"]["properties"]["name"]["const"] == "find"
    assert list(find["then"]["properties"]["args"]["properties"]) == ["state", "most"]


def test_what_is_refused(tmp_path, capfd):
    (tmp_path / "agent.py").write_text("import no_such_thing", encoding="utf-8")
    assert call("schema", "config", "--agent", tmp_path) == 3
    assert "Cannot load agent" in capfd.readouterr().err
    assert call("schema", "report", "--agent", tmp_path) == 2
    assert "--agent is for evalset and config" in capfd.readouterr().err
    assert call("schema", "config", "--agent", Path("nowhere")) == 2
    assert "nowhere does not exist" in capfd.readouterr().err
