"""A short list of choices."""

from rich.style import Style
from textual.app import App
from textual.events import Click

from evaltui.tui.widgets.choices import ChoiceList


async def test_a_click_on_a_choice_that_is_gone_does_nothing():
    class Page(App):
        def compose(self):
            yield ChoiceList(5, lambda number, _: [(f"choice {number}", "")])

    async with Page().run_test() as pilot:
        choices = pilot.app.query_one(ChoiceList)
        choices.offer(2, 1)
        place = {"x": 1, "y": 4, "delta_x": 0, "delta_y": 0, "button": 1, "shift": False, "meta": False}
        for chain in (1, 2):
            choices.post_message(
                Click(choices, **place, ctrl=False, style=Style(meta={"option": 4}), chain=chain)
            )
            await pilot.pause()
        assert choices.current == 1
