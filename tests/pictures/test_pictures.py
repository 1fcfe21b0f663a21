"""The pictures in the README show the program as it is."""

from __future__ import annotations

import pytest
from drawing import FOLDER, PICTURES, draw, words_of


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
async def test_a_picture_is_up_to_date(picture):
    if picture.needs_adk:
        pytest.importorskip("google.adk")
    stored = (FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert words_of(stored) == words_of(await draw(picture)), "run: python tests/pictures"
