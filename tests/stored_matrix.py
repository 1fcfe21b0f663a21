"""A matrix among the stored runs of an agent: an eval set, and a log for each variant."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from eval_data import make_case, make_turn, write_eval_set
from example_runs import DEFAULTS
from fake_runs import _events

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId, case_fingerprint
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.eval_set import EvalCase, Invocation
from evaltui.core.model.outcome import RepeatResult, Status, worst_status
from evaltui.core.model.spending import Spending
from evaltui.core.model.variants import Change, Variant
from evaltui.core.scoring import Expected, failed_repeat, score_repeat
from evaltui.project.agent_files import files_of
from evaltui.project.run_settings import RunSettings
from evaltui.runs.run_file import Ending
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.store import RunStore

CONFIG = EvalConfig.model_validate(DEFAULTS)
WARM = ("set_temperature", {"location": "Bedroom", "degrees": 19})
WRONG = ("set_temperature", {"location": "Bedroom", "degrees": "19"})
NOTIFIED = ("notify_user", {"message": "It was 17.5 °C in the bedroom"})


def _turn(answer: str, *calls: tuple[str, dict]) -> dict:
    return make_turn("Warm the bedroom", answer, [{"name": name, "args": args} for name, args in calls])


_GOOD, _BAD = _turn("It is 19 °C now.", WARM), _turn("It is 19 °C now.", WRONG, NOTIFIED)


_CASE = EvalCase.model_validate(make_case("any", _GOOD))


async def _repeat(letter: str) -> tuple[RepeatResult, list[Invocation]]:
    """One run of a case: `p` does what is expected, `f` does not, `e` raises."""
    expected = Expected("any", _CASE, CONFIG)
    if letter == "e":
        error = ErrorInfo("TimeoutError", "no response within 30 s", kind=ErrorKind.TIMEOUT)
        return failed_repeat(expected, error, [], 0.0), []
    actual = [Invocation.model_validate(_GOOD if letter == "p" else _BAD)]
    return await score_repeat(expected, actual, final_state=None, custom=None), actual


# Tests that have a loop of their own cannot run another one.
_REPEATS = {letter: asyncio.run(_repeat(letter)) for letter in "pfe"}


def write_variant(
    folder: Path,
    name: str,
    sets: Mapping[str, Mapping[str, str]],
    *changes: Change,
    seconds: float = 1.0,
    spent: Spending | None = None,
) -> Path:
    """The log of a variant: by set and case how each run of it came out, "" for a case without a result, and
    what each run cost."""
    for set_id, cases in sets.items():
        write_eval_set(folder, set_id, *(make_case(eval_id, _GOOD) for eval_id in cases))
    config = CONFIG.model_dump(mode="json", exclude_defaults=True)
    selected = [
        SelectedSet(f"{one}.evalset.json", one, tuple(cases), config, whole=True)
        for one, cases in sets.items()
    ]
    runs = max(len(letters) for cases in sets.values() for letters in cases.values())
    header = RunHeader(
        tuple(selected),
        RunSettings(runs=runs),
        files=files_of(folder),
        matrix="m1",
        variant=Variant(name, changes),
    )
    log = begin_run(RunStore(folder), header)
    log.set_agent({"name": "home", "model": next((c.value for c in changes), "gemini-2.5-flash")})
    statuses = []
    for set_id, cases in sets.items():
        for eval_id, letters in cases.items():
            if letters:
                statuses.append(_write_case(log, set_id, eval_id, letters, seconds, spent))
    is_complete = all(letters for cases in sets.values() for letters in cases.values())
    log.close(Ending(worst_status(statuses), 2.0) if is_complete else None)
    return log.path


def _write_case(
    log: RunWriter, set_id: str, eval_id: str, letters: str, seconds: float, spent: Spending | None
) -> Status:
    case = _CASE.model_copy(update={"eval_id": eval_id})
    named = CaseId(f"{set_id}.evalset.json", eval_id)
    repeats = []
    for number, letter in enumerate(letters):
        log.start(named, set_id, number)
        result, actual = _REPEATS[letter]
        for event in _events(actual):
            log.add_event(replace(event, path=named.path, set=set_id, case=eval_id, repeat=number))
        took = seconds + number / 10
        repeats.append(replace(result, seconds=took, expects=case_fingerprint(case), spent=spent))
        log.add_repeat(named, set_id, number, repeats[-1])
    done = case_over_repeats(set_id, eval_id, repeats, "all", named.path)
    log.add_case(summarize(done), done)
    return done.status


BASE = {
    "lights": {"hello": "ppppp", "movie_mode": "pfpfp", "kitchen": "ppppf"},
    "thermostat": {"night": "ffpfp", "away": "ppppp"},
}
PRO = {
    "lights": {"hello": "ppppp", "movie_mode": "ppppp", "kitchen": "ppppf"},
    "thermostat": {"night": "ppppp", "away": "eeeee"},
}


def write_matrix(folder: Path) -> list[Path]:
    """Two variants of five cases, run five times each."""
    return [
        write_variant(folder, "base", BASE),
        write_variant(folder, "pro", PRO, Change("model", "gemini-2.5-pro"), seconds=3.0),
    ]
