"""Text that the mouse selects in views that are drawn line by line, and how it is copied."""

from types import SimpleNamespace

from textual.app import ComposeResult

from evaltui.tui.action_screen import ActionScreen, KeysInOrder
from evaltui.tui.pane import PagePane
from evaltui.tui.result.rows import MIN_WIDTH_BESIDE, Sides, write_sides
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.messages import Messages

LINES = [
    [("▌", "accent"), ("one", "bold"), (" first", "muted")],
    [(" ", ""), ("two", "error"), ("   ", "")],
    [(" ", ""), ("three", "")],
]


class Rows(CursorLines, can_focus=True, inherit_bindings=False):
    clicked = 0

    def on_mount(self) -> None:
        self.lines_changed(len(LINES))

    def line(self, number: int):
        return LINES[number]

    def on_click(self) -> None:
        self.clicked += 1


class TwoSides(PagePane, can_focus=True, inherit_bindings=False):
    """A page whose lines have an expected side and an actual one."""

    def __init__(self) -> None:
        super().__init__(SimpleNamespace(messages=Messages()), id="upper")
        self.page.width = MIN_WIDTH_BESIDE
        for number in range(3):
            write_sides(self.page, Sides("changed", [(f"was {number}", "")], [(f"is {number}", "")]))

    def on_mount(self) -> None:
        self.lines_changed(len(self.page.lines))

    def shown_state(self):
        return None

    def write(self, page):
        pass

    def follow(self):
        pass


class TwoViews(KeysInOrder[None]):
    def views(self):
        return [Rows(id="upper"), Rows(id="lower")]

    def get_default_screen(self):
        views = self.views()

        class Both(ActionScreen[None], inherit_bindings=False):
            CSS = "Rows { height: 5; }"

            def hears(self, message):
                return True

            def compose(self) -> ComposeResult:
                yield from views

        return Both()


async def drag(pilot, begin, end):
    await pilot.mouse_down("#upper", offset=begin)
    await pilot.hover("#upper", offset=end)
    await pilot.mouse_up("#upper", offset=end)
    await pilot.pause()


async def test_a_click_whose_pointer_moves_by_a_cell_is_a_click():
    app = TwoViews()
    async with app.run_test(size=(40, 12)) as pilot:
        await drag(pilot, (2, 1), (3, 1))
        # Only where something is selected, the click is kept from the rows.
        assert not app.screen.selections
        await drag(pilot, (2, 1), (4, 1))
        assert app.screen.selections


async def test_a_line_that_is_cut_is_told_in_full_under_the_pointer():
    app = TwoViews()
    async with app.run_test(size=(8, 12)) as pilot:
        upper = app.query_one("#upper", Rows)
        await pilot.hover("#upper", offset=(2, 0))
        assert str(upper.tooltip) == "one first"
        await pilot.hover("#upper", offset=(2, 1))
        assert upper.tooltip is None
        assert upper.row_role(1) == "sel-blur"


async def test_dragging_selects_and_ctrl_c_copies_without_the_gutter():
    app = TwoViews()
    async with app.run_test(size=(40, 12)) as pilot:
        upper = app.query_one("#upper", Rows)
        await drag(pilot, (2, 0), (3, 1))
        assert app.screen.get_selected_text() == "ne first\ntwo"
        assert upper.clicked == 0, "a drag is no click"
        shown = upper.render_line(1)
        grounds = [str(segment.style.bgcolor) for segment in shown if segment.text.strip()]
        assert grounds != [str(upper.visual_style.rich_style.bgcolor)]
        await pilot.press("ctrl+c")
        assert app.clipboard == "ne first\ntwo"
        assert not app.screen.selections, "the next ctrl+c is for something else"
        await drag(pilot, (0, 0), (39, 2))
        await pilot.press("y")
        assert app.clipboard == "one first\ntwo\nthree"
        await pilot.click("#upper", offset=(2, 1))
        assert upper.clicked == 1


async def test_the_line_under_the_pointer_stands_out():
    app = TwoViews()
    async with app.run_test(size=(40, 12)) as pilot:
        upper = app.query_one("#upper", Rows)
        await pilot.hover(upper, offset=(2, 1))
        assert [upper.row_role(number) for number in range(3)] == ["current", "sel-blur", ""]
        await pilot.hover("#lower", offset=(2, 0))
        await pilot.pause()
        assert upper.row_role(1) == ""


async def test_escape_forgets_the_selection_first():
    app = TwoViews()
    async with app.run_test(size=(40, 12)) as pilot:
        await drag(pilot, (1, 0), (5, 0))
        assert app.screen.selections
        await pilot.press("escape")
        assert not app.screen.selections
        assert app.clipboard == ""


async def test_clicks_select_nothing_wherever_they_are():
    app = TwoViews()
    async with app.run_test(size=(40, 12)) as pilot:
        for place in ("#upper", None):
            for times in (2, 3):
                await pilot.click(place, offset=(2, 1), times=times)
                assert not app.screen.selections, "the next escape is for something else"


async def test_a_selection_stays_in_the_view_that_it_began_in():
    app = TwoViews()
    async with app.run_test(size=(40, 12)) as pilot:
        upper, lower = app.query_one("#upper", Rows), app.query_one("#lower", Rows)
        await pilot.mouse_down(upper, offset=(1, 1))
        await pilot.hover(lower, offset=(3, 1))
        await pilot.mouse_up(lower, offset=(3, 1))
        assert app.screen.get_selected_text() == "two\nthree"


async def test_of_two_sides_the_mouse_selects_the_one_that_it_began_in():
    class BothSides(TwoViews):
        def views(self):
            return [page]

    page = TwoSides()
    app = BothSides()
    async with app.run_test(size=(MIN_WIDTH_BESIDE + 4, 12)) as pilot:
        await drag(pilot, (3, 0), (70, 2))
        assert app.screen.get_selected_text() == "was 0\n  was 1\n  was 2"
        await drag(pilot, (90, 2), (4, 0))
        assert app.screen.get_selected_text() == "is 0\nis 1\nis 2"
