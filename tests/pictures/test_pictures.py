"""The pictures in the README show the program as it is."""

from __future__ import annotations

import pytest
import report_picture
from drawing import PICTURES, stored_words, words_now

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
async def test_a_picture_is_up_to_date(picture):
    if picture.needs_adk:
        pytest.importorskip("google.adk")
    assert await words_now(picture) == stored_words(picture), "run: python tests/pictures"


def test_the_picture_of_the_report_is_up_to_date():
    pytest.importorskip("google.adk")
    assert report_picture.words_now() == report_picture.stored_words(), "run: python tests/pictures report"
