"""The pictures in the README show the program as it is."""

from __future__ import annotations

import pytest
from drawing import PICTURES, stored_words, words_now


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
async def test_a_picture_is_up_to_date(picture):
    if picture.needs_adk:
        pytest.importorskip("google.adk")
    assert await words_now(picture) == stored_words(picture), "run: python tests/pictures"
