from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.jsondoc.composed import changed_pieces, composed
from evaltui.core.jsondoc.splices import Splice, inverted


@st.composite
def edited_texts(draw):
    """A text, splices of it one after the other, and what they made."""
    text = before = draw(st.text("abc", max_size=12))
    splices = []
    for new in draw(st.lists(st.text("abcd", max_size=3), max_size=7)):
        start = draw(st.integers(0, len(text)))
        splices.append(Splice(start, text[start : start + draw(st.integers(0, 4))], new))
        text = splices[-1].apply(text)
    return before, splices, text


@given(edited_texts(), st.integers(1, 4))
def test_composed_splices_do_the_same_piece_by_piece(edited, size):
    before, splices, after = edited
    pieces = [before[start : start + size] for start in range(0, len(before), size)]
    one_by_one = composed(splices)
    assert all(one.end <= other.start for one, other in pairwise(one_by_one))
    assert "".join(changed_pieces(pieces, one_by_one)) == after
    back = composed([*splices, *inverted(splices)])
    assert "".join(changed_pieces(pieces, back)) == before


def test_what_was_taken_back_leaves_nothing():
    done = [Splice(3, "x", "yy"), Splice(1, "", "new"), Splice(9, "old", "")]
    assert composed([*done, *inverted(done)]) == []


@pytest.mark.parametrize("wrong", [Splice(1, "c", "d"), Splice(9, "b", "d"), Splice(2, "bb", "")])
def test_a_splice_that_does_not_fit_is_refused(wrong):
    with pytest.raises(ValueError, match="is not the text of this change"):
        "".join(changed_pieces(["a", "b", "b"], composed([Splice(1, "b", "b "), wrong])))
