"""The keys of the tour do what its text says; the animated picture is made of them."""

from __future__ import annotations

import html

from animation import Svg, frames
from drawing import FOLDER

from evaltui.tui.start.view import TOUR_END, TOUR_STEPS

MOST_BYTES = 400_000


async def test_the_tour_is_gone_through_by_its_keys():
    shown = await frames()
    text = Svg(shown).text()
    assert len(text.encode()) < MOST_BYTES
    for step in TOUR_STEPS:
        assert html.escape(step.text, quote=False) in text
    assert TOUR_END.split(".")[0] in text


def test_the_picture_of_the_demo_shows_the_tour_of_now():
    text = (FOLDER / "demo.svg").read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    missing = [step.text for step in TOUR_STEPS if html.escape(step.text, quote=False) not in text]
    assert not missing, "run: python tests/pictures demo"
