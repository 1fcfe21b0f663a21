"""The README has the keys and the filters that there are."""

from pathlib import Path

import pytest

from tests.readme_tables import with_tables

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_the_tables_of_the_code():
    text = README.read_text(encoding="utf-8")
    assert text == with_tables(text), "run: python -m tests.readme_tables README.md"


def test_a_readme_without_a_place_for_a_table_is_an_error():
    with pytest.raises(ValueError, match="keys"):
        with_tables("nothing")
