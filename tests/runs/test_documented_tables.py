"""The tables of a run's file as the guide documents them, and its queries."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from stored_matrix import write_matrix

from evaltui.project import guide

PAGE = (guide.FOLDER / "files.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def database(tmp_path):
    base, pro = write_matrix(tmp_path)
    with closing(sqlite3.connect(pro)) as database:
        database.execute("ATTACH ? AS before", [str(base)])
        yield database


def test_the_guide_lists_every_table_and_column(database):
    rows = dict(re.findall(r"^\| `(\w+)`[^|]* \| (.*) \|$", PAGE.partition("## Run logs")[2], re.MULTILINE))
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert sorted(rows) == sorted(tables)
    for table, text in rows.items():
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        assert re.findall(r"`([a-z_]+)`", text) == columns


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_guide_finds_something(database, query):
    rows = database.execute(query.replace("'CASE'", "'night'")).fetchall()
    assert rows
    assert all(row[0] is not None for row in rows)


def test_the_guide_has_five_queries():
    assert len(QUERIES) == 5
