import pytest
from check_jsonschema import main as check_jsonschema
from command_line import call


@pytest.mark.parametrize("kind", ["evalset", "config", "report", "matrix", "events"])
def test_each_schema_is_one_for_validators_of_any_language(kind, tmp_path, capsys):
    """Also its patterns, which JavaScript reads otherwise than Python."""
    assert call("schema", kind) == 0
    file = tmp_path / "schema.json"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert not check_jsonschema(["--check-metaschema", str(file)], standalone_mode=False)
