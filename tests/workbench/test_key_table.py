"""The README lists the keys that there are."""

from pathlib import Path

from evaltui.workbench.key_table import key_table

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_the_keys_of_the_registry():
    text = README.read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- keys")
    shown, end, _ = rest.partition("<!-- /keys -->")
    assert end, "the README has no place for the keys"
    table = shown.partition("-->\n")[2].strip()
    assert table == key_table().strip(), (
        "run `python -m evaltui.workbench.key_table` and paste what it prints"
    )
