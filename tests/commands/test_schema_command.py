import json
from pathlib import Path

import pytest
from command_line import call
from jsonschema import Draft7Validator

AGENT = '''\
from evaltui import Agent

def find(state: str, most: int = 3) -> list:
    """Finds orders."""
    return []

print("imported")
root_agent = Agent(name="desk", model="gemini-2.5-flash", tools=[find])
'''


@pytest.mark.parametrize("kind", ["evalset", "config", "report", "events"])
def test_each_format_has_a_schema(kind, capsys):
    assert call("schema", kind) == 0
    Draft7Validator.check_schema(json.loads(capsys.readouterr().out))


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
