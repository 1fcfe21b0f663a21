"""Numbers, times, sizes and lists as text, in one form everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

UNKNOWN = "—"
"""Stands for a number that is not known; never 0 or empty."""

_MINUTE, _HOUR = 60, 3_600
_KB = 1_024
# Thresholds below it need more decimals than others.
_SMALL = 0.01
_MOST_DECIMALS = 13
# Names in a list before `and 4 more`.
_NAMES_IN_LIST = 3


def plural(number: int, singular: str, many: str = "") -> str:
    """A word in the singular or the plural for a number; `many` is a plural that does not end in s."""
    return singular if number == 1 else many or f"{singular}s"


def counted(number: int | None, singular: str, many: str = "") -> str:
    """A number with its word: `1 turn`, `12,431 tokens`, `— calls` for None; `many` is a plural that does not
    end in s."""
    shown = UNKNOWN if number is None else f"{number:,}"
    return f"{shown} {plural(number or 0, singular, many)}"


def short_list(names: Sequence[str], limit: int = _NAMES_IN_LIST) -> str:
    """The first names of a list, and the number of the others: `a, b, c and 4 more`."""
    more = f" and {show_number(len(names) - limit)} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def ordinal(number: int) -> str:
    """A number in an order: `1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def show_score(score: float | None) -> str:
    """A score as text: `0.62`."""
    return UNKNOWN if score is None else f"{score:.2f}"


def show_threshold(threshold: float) -> str:
    """A threshold as text: `0.80`, with more decimals where two are not enough: `0.125`, of small ones up to
    six: `0.0005`."""
    decimals = 6 if 0 < abs(threshold) < _SMALL else 3
    whole, _, fraction = f"{threshold:.{decimals}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0'):0<2}"


def score_figures(score: float, threshold: float | None) -> tuple[str, str]:
    """Score and threshold as texts: `0.62` and `0.80`, "" for no threshold. More decimals where two would
    make them equal; the score is shown on its side of the threshold."""
    if threshold is None:
        return show_score(score), ""
    is_small = abs(threshold) < _SMALL
    figure, needed = show_score(score), show_threshold(threshold) if is_small else show_score(threshold)
    if score == threshold:
        return needed, needed
    if _is_same_side(figure, needed, score, threshold):
        return figure, needed
    if not is_small:
        least = math.copysign(0.001, score - threshold)
        beside = (min if least < 0 else max)(round(score, 3), round(threshold, 3) + least)
        return f"{beside:.3f}", f"{threshold:.3f}"
    # Such as a cost: a thousandth would be far from it.
    for decimals in range(3, _MOST_DECIMALS):
        figure, needed = f"{score:.{decimals}f}", f"{threshold:.{decimals}f}"
        if _is_same_side(figure, needed, score, threshold):
            return figure, needed
    return repr(score), repr(threshold)


def _is_same_side(figure: str, needed: str, score: float, threshold: float) -> bool:
    """Whether two texts of a score and its threshold compare as the numbers do."""
    return float(figure) != float(needed) and (float(figure) < float(needed)) == (score < threshold)


def show_scores(score: float | None, threshold: float | None, at_most: bool = False) -> str:
    """A score against its threshold: `0.62 < 0.80`; with `at_most`, lower scores pass: `3.00 > 2.00`."""
    if score is None:
        return "not scored"
    figure, needed = score_figures(score, threshold)
    if threshold is None:
        return figure
    passes = score <= threshold if at_most else score >= threshold
    signs = ("≤", ">") if at_most else ("≥", "<")
    return f"{figure} {signs[0] if passes else signs[1]} {needed}"


def show_number(value: float | None) -> str:
    """A number with at most three decimals: `3`, `0.125`, `1,412`."""
    return UNKNOWN if value is None else f"{value:,.3f}".rstrip("0").rstrip(".")


def show_money(usd: float | None) -> str:
    """US dollars: `$0.0042`, `$0.011`, `$1.24`, `$0`; two significant digits below a cent, else three
    decimals."""
    if usd is None:
        return UNKNOWN
    if usd < 0.00995:
        # A float would write 0.0000042 as 4.2e-06.
        return f"${Decimal(f'{usd:.1e}'):f}" if usd else "$0"
    return f"${usd:.3f}" if usd < 0.9995 else f"${usd:,.2f}"


def show_rate(rate: float) -> str:
    """A rate as a percentage: `44%`; 100% and 0% are exact."""
    percent = round(rate * 100)
    return f"{max(percent, 1) if rate > 0 else 0}%" if percent < 100 else "100%" if rate >= 1 else "99%"


def show_confidence(level: float) -> str:
    """A confidence level as a percentage: `95%`, `99.9%`; never 100%."""
    return f"{level * 100:.10g}%"


def show_rate_and_interval(rate: float, interval: tuple[float, float]) -> str:
    """A rate with its interval: `84% (74–90%)`."""
    return f"{show_rate(rate)} ({show_interval(*interval)})"


def show_interval(low: float, high: float) -> str:
    """The interval between two rates: `74–90%`."""
    return f"{show_rate(low).removesuffix('%')}–{show_rate(high)}"


def show_p(p: float) -> str:
    """The p-value of a test: `p = 0.07`, `p < 0.001`."""
    return f"p = {show_number(p)}" if p >= 0.0005 else "p < 0.001"


def show_growth(before: float, after: float) -> str:
    """Relative change of a number: `+29%`, `−5%`; `before` must not be 0."""
    return f"{_with_sign(round((after - before) / before * 100))}%"


def show_points(before: float, after: float) -> str:
    """Difference of two rates in percentage points: `+12 pts`, `−25 pts`, `+0 pts`."""
    return f"{_with_sign(round((after - before) * 100))} pts"


def _with_sign(number: int) -> str:
    """A number with its sign; the minus sign is as wide as the plus sign."""
    return f"{number:+d}".replace("-", "−")


def show_duration(seconds: float | None) -> str:
    """A time span: `4 ms`, `0.61 s`, `1.2 s`, `2 min 14 s`, `1 h 05 min`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0005 or not seconds else "<1 ms"
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < _MINUTE - 0.05:
        return f"{seconds:.0f} s" if seconds == int(seconds) else f"{seconds:.1f} s"
    whole, rest = divmod(round(seconds), _MINUTE)
    if whole < _HOUR // _MINUTE:
        return f"{whole} min {rest:02} s" if rest else f"{whole} min"
    hours, minutes = divmod(round(seconds / _MINUTE), _MINUTE)
    return f"{hours} h {minutes:02} min" if minutes else f"{hours} h"


def show_elapsed(seconds: float) -> str:
    """The time since a start, as a running clock: `0:07`, `1:05:00`."""
    minutes, rest = divmod(int(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_moment(at: datetime, now: datetime) -> str:
    """A moment relative to now: `12 s ago`, `3 min ago`; after an hour as by `show_clock`."""
    seconds = (now - at).total_seconds()
    if seconds < _MINUTE:
        return f"{max(0, int(seconds))} s ago"
    return f"{int(seconds // _MINUTE)} min ago" if seconds < _HOUR else show_clock(at, now)


def show_clock(at: datetime, now: datetime) -> str:
    """A moment by the user's clock: `today 14:05`, `22 Nov 14:05`, `22 Nov 2025`."""
    local, today = at.astimezone(), now.astimezone()
    if local.date() == today.date():
        return f"today {local:%H:%M}"
    return f"{local.day} {local:%b %H:%M}" if local.year == today.year else f"{local.day} {local:%b %Y}"


def show_local(at: datetime) -> str:
    """A moment by the user's clock in a form that can be sorted: `2026-11-20 14:03`."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def show_size(count: int) -> str:
    """A number of bytes: `812 B`, `34 KB`, `1.2 MB`."""
    if count < _KB:
        return f"{count} B"
    if round(count / _KB) < _KB:
        return f"{count / _KB:.0f} KB"
    return f"{count / _KB / _KB:.1f} MB"
