"""A metric of this agent's own, in the short form: the score of one turn."""


def few_words(actual, expected, criterion):
    """1.0 where the answer has no more words than the `most_words` of the criterion, else 0.0."""
    words = " ".join(part.text or "" for part in actual.final_response.parts).split()
    return float(len(words) <= criterion.most_words)
