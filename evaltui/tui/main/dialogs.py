"""The actions of the main screen that its first frame does not need: they open dialogs, or go to other panes.

The app loads them when one is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from string import ascii_lowercase

from evaltui.core.compare.failure_groups import FailureGroup, failure_groups
from evaltui.core.metrics.preflight import check_lines
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.tags import typed_tags_problem
from evaltui.project.guide import topic
from evaltui.project.settings import remember_theme
from evaltui.runner.python_check import python_lines
from evaltui.text.figures import counted
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.traces.conversations import RecordedConversation
from evaltui.tui.action_screen import ask, start_work
from evaltui.tui.case.view import CaseView
from evaltui.tui.cases.view import CaseTree
from evaltui.tui.chat.begin import ChatFromScreen, NewChatScreen
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.chat.view import ChatView
from evaltui.tui.compare.screen import ComparisonScreen
from evaltui.tui.criteria.screen import CriteriaScreen
from evaltui.tui.dialogs.accept import AcceptScreen
from evaltui.tui.dialogs.details import ConvertScreen, DetailsScreen
from evaltui.tui.dialogs.finding import FailureGroupScreen, FindCaseScreen
from evaltui.tui.dialogs.keys import GuidePage, GuideScreen, HelpScreen, Jump, JumpScreen
from evaltui.tui.dialogs.merge_conflict import MergeConflictScreen
from evaltui.tui.dialogs.palette import AgentScreen, PaletteScreen, PickRunScreen, Setting, ThemeScreen
from evaltui.tui.dialogs.prompt import PromptScreen, RepeatScreen, dialog_name
from evaltui.tui.dialogs.unsaved import RecoveryScreen, UnsavedScreen
from evaltui.tui.exchange import open_source as open_in_editor
from evaltui.tui.gaps.screen import GapsScreen
from evaltui.tui.main.screen import MainScreen
from evaltui.tui.matrix.screen import MatrixScreen
from evaltui.tui.pane import Beside, Pane
from evaltui.tui.result.view import ResultView
from evaltui.tui.runs.recent import RecentRuns
from evaltui.tui.runs.screen import RunsScreen
from evaltui.tui.sessions import SessionsScreen, ask_for_traces, choose_conversations
from evaltui.tui.textual_private import TextField
from evaltui.tui.trace.view import TraceView
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.agent.background import Progress, run_in_thread
from evaltui.workbench.cases import set_editing
from evaltui.workbench.cases.navigation import CaseOrder
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.chat.imported import save_all, transcript_of
from evaltui.workbench.chat.trace import ChatPlace
from evaltui.workbench.matrix.matrices import mark_failing as mark_failing_cases
from evaltui.workbench.result.acceptable import choices_in_list
from evaltui.workbench.runs.repeats import repeat_cost, repeat_title, usual_repeat
from evaltui.workbench.runs.run_list import RunTarget
from evaltui.workbench.state import RepeatChoice, Selection

_ORDERS = (
    (CaseOrder.OUTCOME, "Order cases by outcome", "Failing cases first"),
    (CaseOrder.TIME, "Order cases by time", "Slowest cases first"),
    (CaseOrder.COST, "Order cases by cost", "Cases with the most tokens first"),
    (CaseOrder.FILE, "Order cases by file", "Cases as in their file"),
)

# Keys and names


def action_help(screen: MainScreen) -> None:
    ask(screen, HelpScreen(screen.scope, screen.refusal), screen.run_action)


def action_guide(screen: MainScreen) -> None:
    """Opens the page of the guide about the pane; from there, all pages."""
    scope = screen.scope
    search = GuideScreen(scope, screen.refusal, screen.run_action)
    screen.app.push_screen(
        GuidePage(topic(scope.topic), search=lambda: ask(screen, search, lambda choose: choose()))
    )


def action_palette(screen: MainScreen) -> None:
    navigation = screen.workbench.navigation

    def reveal(selection: Selection) -> None:
        navigation.set_filter("")
        navigation.select(selection)
        screen.go_to("cases")

    another = Setting(
        "Open agent…",
        "Open another agent; unsaved changes are asked about first",
        partial(_choose_agent, screen),
    )
    settings = (
        Setting("Theme…", "Choose the colours, with a preview", partial(_choose_theme, screen)),
        # Whoever may look at one agent need not be shown every folder.
        *(() if screen.workbench.read_only else (another,)),
        Setting("Open run…", "Show the results of an earlier run", partial(_choose_run, screen)),
        *(Setting(title, about, partial(navigation.order_by, order)) for order, title, about in _ORDERS),
    )
    palette = PaletteScreen(screen.workbench, screen, screen.scope, reveal, settings)
    ask(screen, palette, lambda choose: choose())


def _choose_theme(screen: MainScreen) -> None:
    def use(theme: str) -> None:
        screen.app.theme = theme
        try:
            if not screen.workbench.read_only:
                remember_theme(theme)
        except OSError as error:
            screen.workbench.say(f"Cannot remember the theme: {error}")

    ask(screen, ThemeScreen(screen.app.theme), use)


def _choose_run(screen: MainScreen) -> None:
    def show(run: tuple[Path, str]) -> None:
        if reason := screen.workbench.outcomes.refuses_to_open():
            screen.workbench.say(reason)
        else:
            _show_target(screen, RunTarget(*run))

    ask(screen, PickRunScreen(screen.workbench), show)


def _choose_agent(screen: MainScreen) -> None:
    async def leave_for(path: Path) -> None:
        screen.next_agent = path
        await action_quit(screen)

    ask(screen, AgentScreen(screen.workbench.agent.dir), leave_for)


def action_find_case(screen: MainScreen) -> None:
    ask(screen, FindCaseScreen(screen.workbench), screen.workbench.navigation.show)


def action_jump(screen: MainScreen) -> None:
    """Jumps to a visible pane or section, by the key of its label."""
    panes = screen.panes
    tabs = [Jump(tab.pane, tab.key, at) for tab, at in panes.tab_places() if tab.key]
    places = zip(ascii_lowercase, panes.section_places(), strict=False)
    sections = [Jump(f"{pane} {section}", key, at) for key, (pane, section, at) in places]

    def jump_to(target: str) -> None:
        pane, _, section = target.partition(" ")
        screen.go_to(pane)
        if section:
            panes.jump(pane, section)

    ask(screen, JumpScreen([*tabs, *sections]), jump_to)


def action_open_source(screen: MainScreen) -> None:
    """Opens the source of the current item in the focused pane."""
    around = screen.focused.ancestors_with_self if screen.focused else []
    pane = next((node for node in around if isinstance(node, Pane | Beside)), None)
    place = pane.source() if pane is not None else None
    screen.workbench.say(open_in_editor(screen.app, screen.workbench.agent.dir, place))


# Leaving


async def action_quit(screen: MainScreen) -> None:
    """Quits once all is saved; unsaved changes, and text that is in no case yet, are asked about first."""
    if isinstance(screen.app.screen, UnsavedScreen):
        return
    await screen.workbench.editing.finished()
    if screen.app.screen is screen:
        screen.leave_field()
    typed = _typed_elsewhere(screen)
    if screen.workbench.editing.unsaved() or screen.workbench.draft or typed:
        screen.app.push_screen(UnsavedScreen(screen.workbench, typed), partial(_leave_as_chosen, screen))
    else:
        start_work(screen, screen.app.action_quit)


def _typed_elsewhere(screen: MainScreen) -> str:
    """The text in a field over the screen that is stored nowhere else."""
    field = screen.app.screen.focused
    is_above = screen.app.screen is not screen and screen.workbench.draft is None
    return field.typed if is_above and isinstance(field, TextField) else ""


async def _leave_as_chosen(screen: MainScreen, choice: str | None) -> None:
    editing = screen.workbench.editing
    if choice == "discard":
        screen.workbench.drafting.drop()
        await editing.discard()
    elif choice is None or not screen.leave_field() or not await editing.save_all():
        screen.next_agent = None
        return
    elif editing.unsaved():
        # Changed while the rest was saved.
        await action_quit(screen)
        return
    start_work(screen, screen.app.action_quit)


# Runs


def action_runs(screen: MainScreen) -> None:
    ask(screen, RunsScreen(screen.workbench), partial(_show_target, screen))


def action_matrix(screen: MainScreen) -> None:
    ask(screen, MatrixScreen(screen.workbench), partial(_show_target, screen))


def action_gaps(screen: MainScreen) -> None:
    """Shows the gaps of the selected set, else of all sets."""
    sets = screen.workbench.sets
    selected = sets.by_case_path(screen.workbench.navigation.selection.path)
    searched = [selected] if selected else sets.listed
    paths = [eval_set.path for eval_set in searched if eval_set.cases or eval_set.errors]
    if not paths:
        screen.workbench.say("No cases in this set")
        return

    def show(pane: str) -> None:
        screen.go_to(pane)
        if pane == "case":
            screen.query_one(CaseView).edit_user_text()

    ask(screen, GapsScreen(screen.workbench, paths), show)


def action_sessions(screen: MainScreen) -> None:
    def show(target: RunTarget | None) -> None:
        if target is None:
            screen.go_to("case")
        else:
            _show_target(screen, target)

    ask(screen, SessionsScreen(screen.workbench), lambda left: show(left.target))


def on_recent_runs_compare_runs(screen: MainScreen, message: RecentRuns.CompareRuns) -> None:
    ask(screen, ComparisonScreen(screen.workbench, message.sides), partial(_show_target, screen))


def _show_target(screen: MainScreen, target: RunTarget) -> None:
    start_work(screen, _show_run, screen, target, group="runs")


async def _show_run(screen: MainScreen, target: RunTarget) -> None:
    workbench = screen.workbench
    if target.resumes:
        if await workbench.runs.resume(target.path):
            screen.show_result()
        return
    workbench.say(f"Reading {target.title}…")
    if not await workbench.outcomes.open_run(target.path, target.title):
        return
    if target.case is None:
        screen.go_to("cases")
    elif case := workbench.sets.find_case(target.case, target.eval_set_id):
        workbench.navigation.select(Selection(*case))
        screen.go_to("result")
    else:
        workbench.say(f"{target.case.eval_id} is no longer in an eval set")


def action_preflight(screen: MainScreen) -> None:
    run, check = screen.workbench.runs.current, screen.workbench.agent.python_check
    title: Line = [("Python", "bold")]
    if run is not None and run.checks:
        title = [("Metrics", "bold"), (f" ─ run {run.number}: {visible(run.title)}", "")]

    def write(page: Page) -> None:
        if check is not None:
            page.lines += python_lines(check)
        if check is not None and run is not None and run.checks:
            page.blank()
        if run is not None and run.checks:
            page.lines += check_lines(run.checks, page.width, every=True)

    screen.app.push_screen(DetailsScreen(title, write))


def action_run_repeatedly(screen: MainScreen) -> None:
    workbench = screen.workbench
    sets, selection = workbench.sets, workbench.navigation.selection
    usual = usual_repeat(sets, selection, workbench.runs.current)

    def run(repeated: RepeatChoice) -> None:
        workbench.runs.run_case(repeated)
        screen.show_result()

    cost = partial(repeat_cost, sets, workbench.outcomes, selection)
    ask(screen, RepeatScreen(repeat_title(sets, selection), usual, cost), run)


def action_criteria(screen: MainScreen) -> None:
    _show_criteria(screen, "")


def on_result_view_metric_asked(screen: MainScreen, message: ResultView.MetricAsked) -> None:
    _show_criteria(screen, message.metric)


def _show_criteria(screen: MainScreen, metric: str) -> None:
    """Opens the criteria of the selected set, at a metric."""
    navigation = screen.workbench.navigation

    def show(case: CaseId) -> None:
        navigation.show(Selection(*case))
        screen.go_to("result")

    if (path := navigation.file) is not None:
        ask(screen, CriteriaScreen(screen.workbench, path, metric), show)


# Questions that come up by themselves


def ask_pending(screen: MainScreen) -> None:
    """Opens the next pending question, unless another one is open."""
    if not screen.takes_input:
        return
    if screen.recovered:
        recovered, screen.recovered = screen.recovered, []
        screen.app.push_screen(RecoveryScreen(screen.workbench, recovered), partial(_show_draft, screen))
        return
    new = [clash for clash in screen.workbench.editing.conflicts if clash not in screen.shown_conflicts]
    # Nobody is asked while typing: what is typed next would be taken for the answer.
    if new and screen.app.screen is screen and not isinstance(screen.focused, TextField):
        screen.shown_conflicts.append(new[0])
        screen.app.push_screen(MergeConflictScreen(screen.workbench, new[0]))


def _show_draft(screen: MainScreen, _: object) -> None:
    """Shows the field of a recovered text."""
    if screen.workbench.draft is not None:
        screen.go_to("case")


# Conversations


def action_chat_from_here(screen: MainScreen) -> None:
    """Asks for the turn of the case where the chat starts; without a case, starts a new chat."""
    case, chat = screen.workbench.navigation.selection.case, screen.workbench.chat
    if case is not None:
        ask(screen, ChatFromScreen(screen.workbench, case), lambda _: screen.go_to_entry("chat"))
        return
    if chat.transcript is None:
        chat.new()
    screen.go_to_entry("chat")


def action_new_chat(screen: MainScreen) -> None:
    ask(screen, NewChatScreen(screen.workbench), lambda _: screen.go_to_entry("chat"))


def action_save_as_case(screen: MainScreen) -> None:
    if (transcript := screen.workbench.chat.transcript) is not None:
        _save_as_case(screen, lambda: transcript)


def _save_as_case(screen: MainScreen, read: Callable[[], Transcript]) -> None:
    try:
        saving = SaveCaseScreen(screen.workbench, read())
    except ValueError as error:
        screen.workbench.say(f"Cannot save as case: {error}")
    else:
        ask(screen, saving, lambda _: screen.go_to("case"))


def action_import_traces(screen: MainScreen) -> None:
    """Asks for a file of traces, then for its conversations, then for the turns of a single one."""

    def read(path: str) -> None:
        start_work(screen, choose_conversations, screen, screen.workbench, path, save, group="import")

    def save(conversations: Sequence[RecordedConversation]) -> None:
        if len(conversations) > 1:
            save_all(screen.workbench.agent, screen.workbench.editing, conversations)
        else:
            _save_as_case(screen, partial(transcript, conversations[0]))

    def transcript(conversation: RecordedConversation) -> Transcript:
        transcript, missing = transcript_of(conversation)
        screen.workbench.say(missing)
        return transcript

    ask_for_traces(screen, read)


# Sets and cases


def action_move(screen: MainScreen, step: int) -> None:
    """Moves the selected cases in their set."""
    set_editing.move(screen.workbench.editing, step)


def action_accept(screen: MainScreen) -> None:
    choices = choices_in_list(screen.workbench.editing)
    if choices:
        screen.app.push_screen(AcceptScreen(screen.workbench, choices))
    else:
        screen.workbench.say("No failing case")


def action_new_case(screen: MainScreen) -> None:
    """Adds a case and edits its first text; without any set, a set is created first."""

    def add() -> None:
        if set_editing.new_case(screen.workbench.editing):
            screen.go_to("case")
            screen.query_one(CaseView).edit_user_text()

    if screen.workbench.sets.listed:
        add()
    else:
        _ask_for_set(screen, add, about="for the first case")


def action_new_set(screen: MainScreen) -> None:
    _ask_for_set(screen, lambda: None)


def _ask_for_set(screen: MainScreen, then: Callable[[], None], *, about: str = "") -> None:
    editing = screen.workbench.editing

    def create(set_id: str) -> None:
        if set_editing.new_set(editing, set_id):
            then()

    check = partial(set_editing.new_set_problem, editing)
    hint = f"a–z, 0–9, _   in {set_editing.folder_for_new_set(editing)}"
    proposed = screen.workbench.agent.dir.resolve().name
    value = "" if screen.workbench.sets.listed or check(proposed) else proposed
    ask(screen, PromptScreen(dialog_name("new_set"), value, check, hint, about), create)


def action_rename(screen: MainScreen) -> None:
    row, editing = screen.query_one(CaseTree).current, screen.workbench.editing
    if row is None:
        return
    eval_set, name = row.eval_set, dialog_name("rename")
    if row.case is None:
        check = partial(set_editing.set_id_problem, editing, eval_set.path)
        hint = f"The file name stays {eval_set.path.name}"
        question = PromptScreen(name, eval_set.eval_set_id, check, hint, eval_set.eval_set_id)
        ask(screen, question, partial(set_editing.rename_set, editing, eval_set.path))
    else:
        case = CaseId(eval_set.case_path, eval_set.cases[row.case].eval_id)
        problem_of = set_editing.case_id_problem(editing, eval_set.path, row.case)
        question = PromptScreen(name, case.eval_id, problem_of, about=case.eval_id)
        ask(screen, question, partial(set_editing.rename_case, editing, case, row.case))


def action_convert(screen: MainScreen) -> None:
    if (row := screen.query_one(CaseTree).current) is not None:
        screen.app.push_screen(ConvertScreen(screen.workbench, row.eval_set.path))


def action_edit_json(screen: MainScreen) -> None:
    screen.go_to("case")
    screen.query_one(CaseView).edit_json()


def action_tag_case(screen: MainScreen) -> None:
    editing = screen.workbench.editing
    common, about = set_editing.common_tags(editing), set_editing.name_chosen(editing)
    value, hint = "".join(f"{tag} " for tag in common), set_editing.tags_hint(editing)
    question = PromptScreen(dialog_name("tag_case"), value, typed_tags_problem, hint, about, adds=True)
    ask(screen, question, partial(set_editing.change_tags, editing, common))


def action_mark_failing(screen: MainScreen) -> None:
    start_work(screen, mark_failing_cases, screen.workbench, group="marks")


def action_group_failures(screen: MainScreen) -> None:
    start_work(screen, _ask_for_group, screen, group="marks")


async def _ask_for_group(screen: MainScreen) -> None:
    navigation, outcomes = screen.workbench.navigation, screen.workbench.outcomes
    failing = [(case, outcomes.get(case)) for case in navigation.failing]
    # By the repeat that decides, as in reports, whichever repeat is shown.
    failures = ((case, outcome.result) for case, outcome in failing if outcome is not None)
    groups = await run_in_thread(lambda: failure_groups(failures), Progress())

    def mark(group: FailureGroup) -> None:
        navigation.select(Selection(*group.cases[0]))
        count = navigation.mark(group.cases)
        screen.workbench.say(f"{counted(count, 'case')} marked: {visible(group.reason)}")

    ask(screen, FailureGroupScreen(screen.workbench, groups), mark)


# From pane to pane


def action_step_difference(screen: MainScreen, step: int) -> None:
    if screen.arrangement.focus == "trace":
        screen.query_one(TraceView).step_difference(step)
    else:
        screen.go_to("result")
        screen.query_one(ResultView).step_difference(step)
        shows_case = not screen.workbench.navigation.trace_of_chat
        if shows_case and any(place.shown == "trace" for place in screen.panes.places):
            _show_event(screen)
    screen.draw_soon()


def action_back_to_result(screen: MainScreen) -> None:
    """Goes from the trace to its result, or to its row of the chat."""
    if not screen.workbench.navigation.trace_of_chat:
        screen.go_to("result")
        return
    place = screen.query_one(TraceView).chat_place()
    screen.go_to("chat")
    # To read, not to write.
    screen.set_focus(screen.panes.pane("chat"), scroll_visible=False)
    if place is not None:
        screen.call_after_refresh(screen.query_one(ChatView).show_place, place)


def action_show_in_trace(screen: MainScreen) -> None:
    """Goes from the chat or the result to the event of the current row; from elsewhere to the trace."""
    pane, navigation = screen.arrangement.focus, screen.workbench.navigation
    if pane == "chat":
        place = screen.query_one(ChatView).chat_place()
        navigation.trace_chat(True)
        screen.arrangement.trace_of_chat = True
        screen.leap("trace")
        if place is not None:
            _show_in_trace(screen, place)
        return
    navigation.trace_chat(False)
    if pane == "result":
        screen.leap("trace")
        _show_event(screen)
    else:
        screen.go_to("trace")


def on_chat_view_moved(screen: MainScreen, _: ChatView.Moved) -> None:
    """The trace beside the chat follows its current row."""
    place = screen.query_one(ChatView).chat_place()
    has_both = {"chat", "trace"} <= {place.shown for place in screen.panes.places}
    if has_both and place is not None:
        _show_in_trace(screen, place)


def on_trace_view_moved(screen: MainScreen, _: TraceView.Moved) -> None:
    """The chat follows the current span of its trace."""
    if (place := screen.query_one(TraceView).chat_place()) is not None:
        screen.call_after_refresh(screen.query_one(ChatView).show_place, place)


def _show_in_trace(screen: MainScreen, place: ChatPlace) -> None:
    screen.call_after_refresh(screen.query_one(TraceView).show_place, place)


def _show_event(screen: MainScreen) -> None:
    navigation = screen.workbench.navigation
    if (at := navigation.difference) is not None and at.turn is not None:
        trace = screen.query_one(TraceView)
        screen.call_after_refresh(trace.show, at.turn, navigation.actual_call_index(at))


def action_show_expected(screen: MainScreen) -> None:
    """Shows the expected value of the current difference."""
    screen.query_one(ResultView).select_a_difference()
    screen.leap("case")
    if (at := screen.workbench.navigation.difference) is not None:
        screen.call_after_refresh(screen.query_one(CaseView).show_expected, at)
