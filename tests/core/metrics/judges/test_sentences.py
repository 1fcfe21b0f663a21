"""How an answer is cut into sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.judges.hallucinations import sentences

FRUIT = """There are three kinds of fruits:
1. Apples are red.
2. Bananas are green. Really!

## Prices
* Bananas are cheaper
  than apples, e.g. in spring.
---
| fruit | price |
|-------|-------|
| apple | 1.20  |
Enjoy your fruit! 🍎
```py
x = 1.  # One.

y = 2
```
"""


def test_items_headings_tables_and_code():
    assert sentences(FRUIT) == [
        "There are three kinds of fruits:",
        "1. Apples are red.",
        "2. Bananas are green.",
        "Really!",
        "## Prices",
        "* Bananas are cheaper\n  than apples, e.g. in spring.",
        "| fruit | price |\n|-------|-------|\n| apple | 1.20  |",
        "Enjoy your fruit!",
        "```py\nx = 1.  # One.\n\ny = 2\n```",
    ]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("It costs $3.50. It is 5. Good.", ["It costs $3.50.", "It is 5.", "Good."]),
        ("Dr. Smith met J. Doe, i.e. him. He left.", ["Dr. Smith met J. Doe, i.e. him.", "He left."]),
        ('He said "Go." Then he went.', ['He said "Go."', "Then he went."]),
        ("**Done.** Anything else?", ["**Done.**", "Anything else?"]),
        ("今日は晴れです。明日は雨！", ["今日は晴れです。", "明日は雨！"]),
        ("यह अच्छा है। वह नहीं।", ["यह अच्छा है।", "वह नहीं।"]),
        ("version 1.5 is out", ["version 1.5 is out"]),
        ("```\nnever closed. Still code.", ["```\nnever closed. Still code."]),
        ("", []),
        (" \n…\n---\n🍎", []),
    ],
)
def test_where_a_sentence_ends(text, cut):
    assert sentences(text) == cut


pieces = st.sampled_from(
    [
        ". ",
        "! ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "| ",
        "```",
        "Dr. ",
        "e.g. ",
        "。",
        '"',
        "A",
        "b",
        "7",
        " ",
        "é",
        "\r\n",
    ]
)


@given(text=st.lists(pieces | st.text(max_size=4), max_size=14).map("".join))
def test_every_word_is_in_one_sentence_as_it_was(text):
    found = sentences(text)
    place = 0
    for sentence in found:
        place = text.index(sentence, place) + len(sentence)
    assert words("".join(found)) == words(text)


def words(text):
    return [character for character in text if character.isalnum()]
