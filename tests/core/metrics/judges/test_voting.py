"""The majority decides, a tie is negative, what has no verdict does not count."""

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.judges.judge import deciding, votes_counted
from evaltui.core.model.judgement import Vote

votes = st.lists(st.builds(Vote, st.sampled_from([1.0, 0.0, None]), st.text(max_size=3)), max_size=7)


@given(votes)
def test_the_first_vote_of_the_majority_decides(votes):
    ayes = [vote for vote in votes if vote.score == 1.0]
    noes = [vote for vote in votes if vote.score == 0.0]

    decided = deciding(votes)

    if not ayes and not noes:
        assert decided is None
    else:
        assert decided is (ayes[0] if len(ayes) > len(noes) else noes[0])


def test_votes_that_do_not_count_are_counted():
    assert votes_counted([Vote(1.0), Vote(0.0)]) == ""
    assert votes_counted([Vote(1.0), Vote(None), Vote(0.0)]) == "2 of 3 votes counted"
