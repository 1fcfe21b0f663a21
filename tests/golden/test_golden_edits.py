"""The same series of edits in sets of several styles: what each edit does to the bytes on disk is golden."""

from __future__ import annotations

import pytest

from tests.golden.edits import FOLDER, STYLES, new_files, series

# Every day; all others with --thorough.
_EVERY_DAY = ("crlf-tabs",)


@pytest.mark.parametrize(
    "style",
    [pytest.param(style, marks=() if style in _EVERY_DAY else pytest.mark.thorough) for style in STYLES],
)
async def test_each_edit_changes_these_bytes_and_undoing_takes_them_back(tmp_path, style):
    assert await series(style, tmp_path) == _golden(style)


async def test_new_and_converted_files_have_these_bytes(tmp_path):
    assert await new_files(tmp_path) == _golden("new-files")


def _golden(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
