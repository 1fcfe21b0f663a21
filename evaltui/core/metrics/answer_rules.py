"""`answer_rules`: checks of texts, numbers and forms that answers must have.

A case is scored by the checks that are for it, and passes only if all of them hold. google-adk ignores them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from evaltui.core.metrics.metric import mean, nothing_to_score, turn_reasons, unscored_turn
from evaltui.core.model.answer_rule import CHECKS, AnswerRule
from evaltui.core.model.json_schemas import misfit
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.model.regexes import Patience, SlowRegexError
from evaltui.text.figures import short_list
from evaltui.text.outcomes import NO_CHECK
from evaltui.text.values import cut, show_value, visible

ANSWER_RULES = "answer_rules"
_MAX_TEXT = 60
_NOT_RUN = "the turn did not run, so its checks say nothing"

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH_NAME = re.compile(
    r"(?:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|apr(?:il)?|may|jun[ei]?|jul[iy]?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_MONTH = rf"(?={_MONTH_NAME.pattern})(?P<month>[a-z]{{3}})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\.?"
_DATES = (
    re.compile(rf"\b{_DAY} (?:of )?{_MONTH}(?:,? (?P<year>\d{{4}}))?\b"),
    re.compile(rf"\b{_MONTH} {_DAY}(?:,? (?P<year>\d{{4}}))?\b"),
    re.compile(rf"\b{_MONTH}(?:,| of)? (?P<year>(?:19|20)\d\d)(?P<day>)\b"),
)
_SYMBOLS = "$¢£¤¥฿₡₦₩₪₫€₱₴₸₹₺₽"
_CODES = "usd eur gbp jpy inr krw rub chf cad aud nzd cny sek nok dkk pln czk huf brl mxn zar sgd hkd ils thb"
_CURRENCY = (
    rf"(?<!\w)(?:us|ca|c|au|a|nz|hk|s|r|mx)\$|[{_SYMBOLS}]"
    rf"|(?<!\w)(?:{_CODES.replace(' ', '|')})(?= ?[-+−–]?\d)"
)
_SIGN = r"(?<!\w)(?:(?<!\d )minus |[-+−–](?! ))"
# In lower case; other scripts are written without spaces, or join particles to words.
_LETTERS = r"\da-z\u00df-\u00f6\u00f8-\u024f\u0300-\u0373\u0376-\u052f\u0561-\u0587\u10d0-\u10ff\u1e00-\u1fff"
_WORD_LETTER = re.compile(f"[{_LETTERS}]")
# A word with a digit in it, such as a number, a time, a date or an id.
_WORD = re.compile(
    rf"(?P<before>{_SIGN})?(?P<currency>{_CURRENCY})? ?(?P<sign>{_SIGN})?"
    # From its first letter on: in a long text without digits, each letter would be tried.
    rf"(?(sign)|(?(before)|(?(currency)|(?<![{_LETTERS}_-]))))"
    rf"(?P<word>(?:[{_LETTERS}_]+-)*[{_LETTERS}_]*\d[{_LETTERS}_.,:/#-]*)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?P<unit>[^\W\d]*)(?:/(?P<per>[^\W\d]+))?"
)
_UNIT = re.compile(
    rf"\s?(?:degrees? (?=[cf]))?(?P<unit>km/h|[%‰°{_SYMBOLS}][cf]?\b|[%‰°{_SYMBOLS}円원]|[^\W\d_]+)"
)
# After a unit that is known, or one other word.
_OTHER_UNIT = re.compile(
    r"\s(?!(?:and|or|in|for|at|to|is|as|of|with|on|per|an?|each|every)\s)[^\W\d_]+(?=[ /])"
)
_PER = re.compile(r"\s?(?P<by>/|per |an? |each |every )\s?(?P<per>[^\W\d_]+)")
_END = r"(?:\d{1,2}:\d\d|\d+(?:,\d{3})*(?:\.\d+)?)"
_RANGE = re.compile(rf"(?<![\w.,:/#-])(?P<from>{_END})(?: ?[-–] ?)(?P<to>{_END})(?![-–\d:/]|[.,]\d)")
# One number in groups: of an account, a card or a phone; of three digits, as in French, Swiss and SI writing.
_GROUPS = re.compile(r"(?<![\w.,:/#-])(?:(?:[a-z]{2})?\d{2,}(?: \d{2,}){2,}|\d{1,3}(?:[ ']\d{3})+)(?!\d)")
# The zero of a postal code, an order or a PIN is part of it.
_ZERO_FIRST = re.compile(r"0\d+")
_PAIR = re.compile(r"[\d.,]+[-/][\d.,]+")
# Between the numbers of a list or a range, of which one may have the unit of all.
_BETWEEN = re.compile(r"(?:,|/|x|×|to|and|or|until)(?: and| or)?")
_TO = re.compile(r"(?:\S{1,12} )?(?:to|until)")
_BOUND = re.compile(
    r"(?<![-=<>])(?P<symbol>[<>≤≥])=? ?$"
    r"|\b(?:(?P<least>at least|more than|over|above|not? (?:less|fewer) than)"
    r"|at most|(?:less|fewer) than|under|below|not? more than) ?$"
)
_ZONE = re.compile(
    r" ?\(?(utc|gmt|w?est|cet|[cew]est|[ecmp][sd]?t|ak[sd]t|bst|ist|jst|kst|hkt|sgt|a[ecw][sd]t|nz[sd]t"
    r"|msk)\b"
)
_OPPOSITE = {"<": ">", ">": "<", "from": "to", "to": "from"}
_TIME = re.compile(
    r"(?<![\w:.])(?P<hour>0?[1-9]|1[0-2])(?::(?P<minute>[0-5]\d))? ?(?P<half>[ap])(?:m\b|\.m\.?)"
)
_BARE_FRACTION = re.compile(r"(?<![\w.,])\.(?=\d)")
_SUPERSCRIPT = re.compile(r"(?<=\d)[²³¹⁰⁴-⁹]")
_FACTORS = {
    "hundred": 2,
    "thousand": 3,
    "lakh": 5,
    "crore": 7,
    "million": 6,
    "mn": 6,
    "mio": 6,
    "billion": 9,
    "bn": 9,
    "trillion": 12,
}
"""Powers of ten by the words for them."""
_JOINED_FACTORS = _FACTORS | {"k": 3}
_MONEY_FACTORS = _JOINED_FACTORS | {"m": 6, "b": 9}


class _Unit(NamedTuple):
    forms: tuple[str, ...]
    """Symbols and abbreviations, then its word, without the s of a plural."""
    other: str
    """A unit that it may be confused with; "" for none."""


def _unit(forms: str, other: str = "") -> _Unit:
    return _Unit(tuple(forms.split()), other)


_UNITS = {
    "dollar": _unit("$ USD dollar", "euro"),
    "euro": _unit("€ EUR euro", "dollar"),
    "pound": _unit("£ GBP pound", "dollar"),
    "yen": _unit("¥ JPY 円 yen", "dollar"),
    "cent": _unit("¢ cent"),
    "penny": _unit("pence penny"),
    "rupee": _unit("₹ INR rupee"),
    "won": _unit("₩ KRW 원 won"),
    "ruble": _unit("₽ RUB rouble ruble"),
    "percent": _unit("% percent"),
    "permille": _unit("‰ permille"),
    "degree": _unit("°C ° C degree Celsius", "fahrenheit"),
    "fahrenheit": _unit("°F F Fahrenheit", "degree"),
    "kilobyte": _unit("KB kilobyte", "megabyte"),
    "megabyte": _unit("MB megabyte", "gigabyte"),
    "gigabyte": _unit("GB gigabyte", "megabyte"),
    "terabyte": _unit("TB terabyte", "gigabyte"),
    "millisecond": _unit("ms millisecond", "second"),
    "millimeter": _unit("mm millimetre millimeter", "centimeter"),
    "centimeter": _unit("cm centimetre centimeter", "millimeter"),
    "inch": _unit("inche inch", "centimeter"),
    "foot": _unit("ft feet foot", "meter"),
    "ounce": _unit("oz ounce", "gram"),
    "milliliter": _unit("ml millilitre milliliter", "liter"),
    "mph": _unit("mph", "km/h"),
    "km/h": _unit("kmh kph km/h", "mph"),
    "centiliter": _unit("cl centilitre centiliter", "milliliter"),
    "deciliter": _unit("dl decilitre deciliter", "milliliter"),
    "teaspoon": _unit("tsp teaspoon", "tablespoon"),
    "tablespoon": _unit("tbsp tablespoon", "teaspoon"),
    "watt": _unit("W watt", "kilowatt"),
    "kilowatt": _unit("kW kilowatt"),
    "megawatt": _unit("MW megawatt"),
    "horsepower": _unit("hp horsepower"),
    "volt": _unit("V volt"),
    "kilovolt": _unit("kV kilovolt"),
    "ampere": _unit("amp ampere"),
    "milliampere": _unit("mA milliampere"),
    "hertz": _unit("Hz hertz"),
    "kilohertz": _unit("kHz kilohertz", "megahertz"),
    "megahertz": _unit("MHz megahertz", "gigahertz"),
    "gigahertz": _unit("GHz gigahertz", "megahertz"),
    "kilobit": _unit("kbit kilobit", "megabit"),
    "megabit": _unit("Mbit megabit", "gigabit"),
    "gigabit": _unit("Gbit gigabit", "megabit"),
    "kbps": _unit("kbps", "mbps"),
    "mbps": _unit("Mbps", "gbps"),
    "gbps": _unit("Gbps", "mbps"),
    "calorie": _unit("kcal cal kilocalorie calorie"),
    "joule": _unit("J joule"),
    "kilojoule": _unit("kJ kilojoule"),
    "microsecond": _unit("µs microsecond", "millisecond"),
    "second": _unit("s sec second", "minute"),
    "minute": _unit("min minute", "hour"),
    "hour": _unit("h hr hour", "day"),
    "day": _unit("day", "week"),
    "night": _unit("night", "week"),
    "week": _unit("week", "month"),
    "month": _unit("month", "year"),
    "year": _unit("year", "month"),
    "microgram": _unit("mcg µg microgram", "milligram"),
    "milligram": _unit("mg milligram", "gram"),
    "ton": _unit("t tonne ton", "kilogram"),
    "kilogram": _unit("kg kilogram", "lb"),
    "lb": _unit("lb", "kilogram"),
    "gram": _unit("g gram", "kilogram"),
    "kilometer": _unit("km kilometre kilometer", "mile"),
    "mile": _unit("mi mile", "kilometer"),
    "meter": _unit("m metre meter", "kilometer"),
    "liter": _unit("l litre liter"),
}
_UNITS |= {code: _unit(code.upper()) for code in _CODES.split()[7:]}
_UNITS |= {
    word.lower(): _unit(word) for word in ["Wh", "kWh", "MWh", "bar", "psi", "hectare", "acre", "dozen"]
}
_UNIT_OF = {form.casefold(): name for name, unit in _UNITS.items() for form in unit.forms} | {"us$": "dollar"}
_MONEY = {_UNIT_OF[code] for code in _CODES.split()}
_RATES = {"km/h": ("kilometer", "hour"), "mph": ("mile", "hour")} | {
    f"{letter}bps": (f"{prefix}bit", "second")
    for letter, prefix in (("k", "kilo"), ("m", "mega"), ("g", "giga"))
}
# A single letter after a number may be something else.
_FORMS = sorted(
    (
        re.escape(form)
        for unit in _UNITS.values()
        for form in unit.forms
        if len(form) > 1 or not form.isalpha()
    ),
    key=len,
    reverse=True,
)
_WRITTEN_UNIT = re.compile(
    rf"(?P<before>[€$£¥])(?=\s?\d)|(?<=\d)\s?(?P<after>(?:{'|'.join(_FORMS)})s?(?!\w))", re.IGNORECASE
)


def with_other_units(text: str) -> Iterator[str]:
    """A text with another unit after or before a number, once for each that has another."""
    for match in _WRITTEN_UNIT.finditer(text):
        group = "before" if match["before"] else "after"
        if other := _other_unit(match[group]):
            yield text[: match.start(group)] + other + text[match.end(group) :]


def _other_unit(written: str) -> str:
    """Another unit as a symbol, an abbreviation or a word as `written`; "" where there is none."""
    single = written.casefold()
    single = single if single in _UNIT_OF else single.removesuffix("s")
    unit = _UNITS[_UNIT_OF[single]]
    if not unit.other:
        return ""
    forms = _UNITS[unit.other].forms
    if single != unit.forms[-1].casefold():
        return forms[0] if len(forms[0]) > 1 or not forms[0].isalpha() else forms[-1]
    plural = "s" if len(written) > len(single) else ""
    return forms[-1] + plural


class Quantity(NamedTuple):
    """A number with its unit, or another word with digits in it, such as a time or an id."""

    value: Decimal | str
    unit: str
    """"" where none is written, or none that is known."""
    per: str = ""
    """The unit of a rate, such as `hour`; "" for no rate."""
    shared: str = ""
    """The unit that another number of its list or range has; "" where it has a unit of its own."""
    side: str = ""
    """The side of a bound, `<` or `>`, or of a range, `from` or `to`; "" for others."""
    zone: str = ""
    """The time zone of a time; "" where none is written."""

    def __str__(self) -> str:
        number = f"{self.value:f}" if isinstance(self.value, Decimal) else self.value
        bound = self.side if self.side in ("<", ">") else ""
        unit = f" {self.zone or self.unit}".rstrip()
        return f"{bound}{number}{unit}" + (f"/{self.per}" if self.per else "")

    def fits(self, other: Quantity) -> bool:
        """Whether two say the same, as far as units, bounds and time zones are written; a percentage is no
        plain number."""
        is_same = self.value == other.value and self.side != _OPPOSITE.get(other.side, ...)
        return (
            is_same
            and (self.zone == other.zone or "" in (self.zone, other.zone))
            and any(
                _same_unit(mine, theirs) and self._same_rate(other, mine)
                for mine in self._units
                for theirs in other._units
            )
        )

    def states(self, other: Quantity) -> bool:
        """Whether it says what another quantity says, the unit included."""
        return self.fits(other) and (not other.unit or other.unit in self._units)

    def _same_rate(self, other: Quantity, unit: str) -> bool:
        """Whether two are rates by the same unit; the rate of a price or of a bare number may be left out."""
        return self.per == other.per or ("" in (self.per, other.per) and unit in ("", *_MONEY))

    @property
    def _units(self) -> set[str]:
        return {self.unit, self.shared or self.unit}


def _same_unit(unit: str, other: str) -> bool:
    return unit == other or (not (unit and other) and "percent" not in (unit, other))


def quantities(text: str) -> list[Quantity]:
    """The numbers, dates, times and ids of a text; a date with the name of its month as `2026-11-30`, a time
    with `am` or `pm` as `17:30`, a range as two numbers."""
    text = _one_spaced(_SUPERSCRIPT.sub(r"^\g<0>", text))
    text = _GROUPS.sub(lambda match: re.sub("[ ']", "", match[0]), text)
    text = _BARE_FRACTION.sub("0.", _TIME.sub(_full_time, text))
    text = _RANGE.sub(_range_in_words, text)
    for date in _DATES:
        text = date.sub(_iso_date, text)
    matches = [*_WORD.finditer(text)]
    items = [_quantity(match, text[match.end() :], text[: match.start()]) for match in matches]
    between = [text[match.end() : other.start("word")].strip() for match, other in pairwise(matches)]
    for place, words in enumerate(between):
        if _TO.fullmatch(words):
            items[place] = items[place]._replace(side=items[place].side or "from")
            items[place + 1] = items[place + 1]._replace(side=items[place + 1].side or "to")
    is_joined = [_BETWEEN.fullmatch(words) is not None for words in between]
    last = len(items) - 1
    neighbours = [(place, place + 1) for place in range(last - 1, -1, -1)]
    neighbours += [(place + 1, place) for place in range(last)]
    for place, near in neighbours:
        if is_joined[min(place, near)] and not (items[place].unit or items[place].shared):
            items[place] = items[place]._replace(shared=items[near].unit or items[near].shared)
    return items


def _range_in_words(match: re.Match[str]) -> str:
    """A range from a lower to a higher number, `5 to 10`; a score or another pair as it is."""
    texts = match["from"].replace(",", ""), match["to"].replace(",", "")
    start, end = ([float(part) for part in text.split(":")] for text in texts)
    is_range = len(start) == len(end) and start < end
    return f"{match['from']} to {match['to']}" if is_range else match[0]


def _iso_date(match: re.Match[str]) -> str:
    month = _MONTHS.index(match["month"]) + 1
    year = f"{match['year']}-" if match["year"] else ""
    day = f"-{int(match['day']):02}" if match["day"] else ""
    return f"{year}{month:02}{day}"


def _full_time(match: re.Match[str]) -> str:
    hour = int(match["hour"]) % 12 + (12 if match["half"] == "p" else 0)
    return f"{hour:02}:{match['minute'] or '00'}"


def _quantity(match: re.Match[str], rest: str, before: str) -> Quantity:
    """The quantity of a word with the texts after and before it."""
    quantity = _plain_quantity(match, rest)
    if bound := _BOUND.search(before[-20:]):
        is_least = bound["symbol"] in (">", "≥") or bound["least"]
        quantity = quantity._replace(side=">" if is_least else "<")
    if ":" in match["word"] and (zone := _ZONE.match(rest)):
        quantity = quantity._replace(zone="utc" if zone[1] == "gmt" else zone[1])
    return quantity


def _plain_quantity(match: re.Match[str], rest: str) -> Quantity:
    """The quantity of a word, without bound and time zone."""
    word, currency = match["word"].rstrip(".,:/#-"), match["currency"] or ""
    rest = rest if word == match["word"] else ""
    number = _NUMBER.fullmatch(word)
    if number is None:
        following = _UNIT.match(rest) if _PAIR.fullmatch(word) else None
        return Quantity(word, _unit_name(currency or (following["unit"] if following else "")))
    unit = number["unit"]
    if factor := (_MONEY_FACTORS if currency else _JOINED_FACTORS).get(unit, 0):
        unit = ""
    elif unit and not _unit_name(unit):
        return Quantity(word, _unit_name(currency))
    elif not unit and (following := _UNIT.match(rest)):
        factor = (_MONEY_FACTORS if currency else _FACTORS).get(following["unit"].rstrip("s"), 0)
        rest = rest[following.end() :] if factor else rest
    if not (currency or unit) and (following := _UNIT.match(rest)):
        unit = following["unit"] if _unit_name(following["unit"]) else ""
        rest = rest[following.end() :] if unit else rest
    name, per = _unit_name(currency or unit), _unit_name(number["per"] or "") or number["per"] or ""
    if not name and (other := _OTHER_UNIT.match(rest)) and _PER.match(rest[other.end() :]):
        rest = rest[other.end() :]
    while rate := _PER.match(rest):
        # "5 a day" is a rate, "5 a side" is none.
        by = _unit_name(rate["per"]) or (rate["per"] if rate["by"] in ("/", "per ") else "")
        per, rest = "/".join(filter(None, (per, by))), rest[rate.end() :]
    name, per = _RATES.get(name, (name, per))
    if _ZERO_FIRST.fullmatch(word) and not (name or per):
        return Quantity(word, "")
    value = (Decimal(number["digits"].replace(",", "")) * 10**factor).normalize()
    is_negative = any((match[sign] or "+") != "+" for sign in ("before", "sign"))
    return Quantity(-value if is_negative else value, name, per)


def _unit_name(written: str) -> str:
    """The name of a unit; a currency of another country by its symbol, "" for an unknown word."""
    # A letter has no plural: "5 vs 3" are no volts.
    singular = written.rstrip("s") if len(written) > 2 else written
    name = _UNIT_OF.get(written) or _UNIT_OF.get(singular, "")
    return name or (written if written[-1:] in tuple(_SYMBOLS) else "")


def quantity_texts(text: str) -> list[str]:
    """The numbers, dates, times and ids of a text as they are written, with their units."""
    texts = []
    for match in _WORD.finditer(text):
        word = match["word"].rstrip(".,:/#-")
        end = match.start("word") + len(word)
        following = _UNIT.match(text, end) if word == match["word"] else None
        if following and _unit_name(following["unit"].casefold()):
            end = following.end()
        texts.append(text[match.start() : end].strip())
    return texts


_TYPED = {
    **dict.fromkeys(map(ord, "‘’"), "'"),
    **dict.fromkeys(map(ord, "“”„«»"), '"'),
    **dict.fromkeys((0x2010, 0x2011, 0x2012), "-"),
    **dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)),
}
"""Quotation marks and hyphens as a keyboard has them, and invisible characters."""


def plain(text: str) -> str:
    """A text as it is compared: without case, compatibility-composed, as a keyboard types it."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_TYPED)


def has_text(answer: str, text: str) -> bool:
    """Whether an answer has a text as whole words and numbers, without regard to case and to how white space
    is written.

    Only letters of alphabets that put spaces between words, such as Latin and Cyrillic, continue a word.
    """
    words = _one_spaced(text)
    before = rf"(?<![{_LETTERS}])" if _WORD_LETTER.match(words[:1]) else ""
    after = rf"(?![{_LETTERS}])" if _WORD_LETTER.match(words[-1:]) else ""
    if words[:1].isdigit() or words.startswith(tuple(_SYMBOLS)):
        before += r"(?<!\d[.,])(?<!^[-−–])(?<![^\w)][-−–])"
    if words[-1:].isdigit():
        after += r"(?![.,]\d)"
    return re.search(before + re.escape(words) + after, _one_spaced(answer)) is not None


def _one_spaced(text: str) -> str:
    return " ".join(plain(text).split())


class Answer(NamedTuple):
    """The response of a turn beside the expected one."""

    actual: str
    expected: str | None
    """None where none is expected."""
    unscored: str = ""
    """Why the turn is not scored; "" where it is."""
    is_known: bool = True
    """Whether a trace told the response."""
    agent: str | None = None
    """The agent that gives it; "" for no response, None where no event tells it."""


def answer_rules_result(
    rules: Sequence[AnswerRule], answers: Sequence[Answer], expected_turns: int = 0
) -> MetricResult:
    """The result of the checks of a case: the share of checked answers for which all of their checks hold.

    A check that cannot be decided, or is for a turn that did not run, keeps the case from passing, but not
    from failing by another. `expected_turns` is the number of turns that should have run, at least.
    """
    patience = Patience()
    turns: list[InvocationScore] = []
    undecided: dict[int, str] = {}
    for number, answer in enumerate(answers):
        of_turn = [rule for rule in rules if rule.turn in (None, number)]
        if answer.unscored or not of_turn:
            turns.append(unscored_turn(answer.unscored or NO_CHECK))
            continue
        try:
            broken = [text for rule in of_turn for text in _broken(rule, answer, patience)]
        except _UndecidedError as error:
            undecided[number] = str(error)
            turns.append(unscored_turn(str(error)))
            continue
        status = Status.FAILED if broken else Status.PASSED
        turns.append(InvocationScore(float(not broken), status, "; ".join(broken)))
    for number in range(len(answers), expected_turns):
        if any(rule.turn is None for rule in rules):
            undecided[number] = _NOT_RUN
    numbers = {rule.turn for rule in rules if rule.turn is not None and rule.turn >= len(answers)}
    return _over_turns(turns, undecided | dict.fromkeys(sorted(numbers), _NOT_RUN))


def check_in_words(rule: Mapping[str, object]) -> str:
    """A check as the config has it, in a few words: `contains "19 °C", numbers equal`."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_value_in_words(rule[name])}" for name in CHECKS if name in rule
    )


def _value_in_words(value: object) -> str:
    if isinstance(value, list):
        return short_list([_quoted(str(text)) for text in value])
    return visible(value) if isinstance(value, str) else show_value(value, _MAX_TEXT)


NEGATIONS = ("not", "never", "cannot", "can't", "isn't", "aren't", "wasn't", "doesn't", "didn't", "won't")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w-]+(?: [A-Z][\w-]+)*|(?<=[\"“«`])[^\"”»`]{2,40}(?=[\"”»`])")


def proposed_checks(expected: str) -> list[dict[str, object]]:
    """Checks that an answer fits, made of its numbers, its names and quotations, and the negations that it
    does not have. Names and negations are found in English."""
    checks: list[dict[str, object]] = []
    if quantities(expected):
        checks.append({"numbers": "equal"})
    if names := [name for name in names_in(expected) if has_text(expected, name)]:
        checks.append({"contains": names})
    if not any(has_text(expected, word) for word in NEGATIONS):
        checks.append({"not_contains": [*NEGATIONS]})
    return checks


def names_in(text: str) -> list[str]:
    """The names and quotations of an English text, each once."""
    names = dict.fromkeys(_NAME.findall(text))
    return [name for name in names if not _MONTH_NAME.fullmatch(name.casefold())]


class _UndecidedError(Exception):
    """A check that cannot be decided; the message says why."""


def _broken(rule: AnswerRule, answer: Answer, patience: Patience) -> Iterator[str]:
    """The checks of a rule that an answer breaks, in words."""
    if not answer.is_known:
        raise _UndecidedError("response unknown: not in the trace")
    for text in rule.contains or ():
        if not has_text(answer.actual, text):
            yield f"lacks {_quoted(text)}"
    for text in rule.not_contains or ():
        if has_text(answer.actual, text):
            yield f"has {_quoted(text)}"
    if rule.regex is not None:
        try:
            matches = patience.matches(rule.regex, answer.actual, anywhere=True)
        except SlowRegexError:
            raise _UndecidedError(f"regex {visible(rule.regex)} takes too long") from None
        if not matches:
            yield f"does not match {visible(rule.regex)}"
    if rule.numbers is not None:
        if answer.expected is None:
            raise _UndecidedError("numbers: no response expected to compare with")
        yield from _other_numbers(quantities(answer.expected), quantities(answer.actual))
    if rule.json_schema is not None:
        yield from _misfits(rule.json_schema, answer.actual, patience)
    if rule.agent is not None and answer.agent != rule.agent:
        if answer.agent is None:
            raise _UndecidedError("agent unknown: no event of the response")
        yield f"from {visible(answer.agent)}, not {visible(rule.agent)}" if answer.agent else "no response"


def _other_numbers(expected: Sequence[Quantity], actual: Sequence[Quantity]) -> Iterator[str]:
    missing = [quantity for quantity in expected if not any(other.states(quantity) for other in actual)]
    extra = [quantity for quantity in actual if not any(map(quantity.fits, expected))]
    if missing:
        yield f"lacks {short_list(list(dict.fromkeys(map(str, missing))))}"
    if extra:
        yield f"has {short_list(list(dict.fromkeys(map(str, extra))))}, not expected"


def _misfits(schema: Mapping[str, object], answer: str, patience: Patience) -> Iterator[str]:
    try:
        value = json.loads(answer, parse_constant=_no_json_value)
        why = misfit(schema, value, patience)
    except ValueError as error:
        yield f"is not JSON: {error}"
    except SlowRegexError as slow:
        raise _UndecidedError(f"json_schema: the pattern {visible(str(slow))} takes too long") from None
    except RecursionError:
        raise _UndecidedError("json_schema: the response is nested too deep") from None
    else:
        if why:
            yield f"does not fit its schema: {visible(why)}"


def _no_json_value(name: str) -> object:
    raise ValueError(f"{name} is no value of JSON")


def _quoted(text: str) -> str:
    return f'"{cut(visible(text), _MAX_TEXT)}"'


def _over_turns(turns: Sequence[InvocationScore], undecided: Mapping[int, str]) -> MetricResult:
    scores = [turn.score for turn in turns if turn.score is not None]
    failed = {number: turn.reason for number, turn in enumerate(turns) if turn.status is Status.FAILED}
    score, status, reason = mean(scores) if scores else None, Status.PASSED, turn_reasons(failed)
    if failed:
        status = Status.FAILED
    elif undecided or not scores:
        score, status = None, Status.NOT_EVALUATED
        reason = turn_reasons(undecided) or nothing_to_score(turns)
    return MetricResult(ANSWER_RULES, score, 1.0, status, per_invocation=tuple(turns), reason=reason)
