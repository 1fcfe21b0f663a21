"""A secret is masked in every spelling, in whatever text it stands, and in pieces."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.secrets import Secrets


def basic(text):
    return "Basic " + base64.b64encode(f"user:{text}".encode()).decode()


def json_in_json(text):
    return json.dumps(json.dumps({"k": [text]}))


def lower_url(text):
    return re.sub("%..", lambda match: match.group().lower(), quote(text, safe=""))


SPELLINGS = {
    "plain": str,
    "JSON": json.dumps,
    "JSON in JSON": json_in_json,
    "JSON in JSON in JSON": lambda text: json.dumps(json_in_json(text)),
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "repr": repr,
    "ascii": ascii,
    "bytes": lambda text: repr(text.encode()),
    "repr of JSON": lambda text: repr(json.dumps(text)),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, one byte further": lambda text: base64.b64encode(f"a{text}b".encode()).decode(),
    "base64, two bytes further": lambda text: base64.b64encode(f"ab{text}".encode()).decode(),
    "urlsafe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 of JSON": lambda text: base64.b64encode(json.dumps({"k": text}).encode()).decode(),
    "Basic": basic,
    "quote": quote,
    "quote with slashes": lambda text: quote(text, safe=""),
    "lower-case quote": lower_url,
    "quote_plus": quote_plus,
    "quote of quote": lambda text: quote(quote(text, safe=""), safe=""),
    "HTML": html.escape,
    "HTML of JSON": lambda text: html.escape(json.dumps(text)),
    "hex": lambda text: text.encode().hex(),
    "upper-case hex": lambda text: text.encode().hex().upper(),
}
# Such that no surrounding text and no mark has them by chance.
secret_texts = st.text(st.sampled_from("qzKXé字🎩/\\\"'<&+=%:@ .~-_#0"), min_size=8, max_size=30)
around = st.text(st.sampled_from('ab1 "\\/=\n<'), max_size=6)


def leaves(secret, spelled, clean):
    """Whether a masked text has the secret: what nothing but its spelling can have brought there."""
    body = spelled.strip("\"'{}[] \\")
    return secret in clean or (len(body) > 8 and body in clean)


def masks(secret, spelling, before, after):
    secrets = Secrets({"SHOP_API_KEY": secret})
    spelled = SPELLINGS[spelling](secret)
    text = f"{before}{spelled}{after}"
    assert "<SHOP_API_KEY>" in secrets.mask_text(text)
    assert not leaves(secret, spelled, secrets.mask_text(text))
    for ascii_only in (True, False):
        line = json.dumps({"a": [text]}, ensure_ascii=ascii_only)
        assert secrets.may_hold_secret(line)
        assert json.loads(secrets.mask_json(line, json.dumps)) == {"a": [secrets.mask_text(text)]}
    assert secrets.masked({"a": [text]}) == {"a": [secrets.mask_text(text)]}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", ["sk_live-\"q'\\/+ é&%=:Z9Z9Z9", "two w0rds"])
def test_no_spelling_of_a_secret_is_left(spelling, secret):
    masks(secret, spelling, 'a "', "\n=")


@given(secret=secret_texts, spelling=st.sampled_from([*SPELLINGS]), before=around, after=around)
def test_no_spelling_of_any_secret_is_left(secret, spelling, before, after):
    masks(secret, spelling, before, after)


@given(secret=secret_texts, before=around, after=around, data=st.data())
def test_a_secret_in_pieces_is_masked_as_in_the_whole_text(secret, before, after, data):
    secrets = Secrets({"SHOP_API_KEY": secret})
    text = f"{before}{secret}{after}"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(secrets.mask_pieces(pieces)) == secrets.mask_text(text)
    for cut in range(len(before) + 1, len(before) + len(secret)):
        assert secrets.open_tail(text[:cut]) >= cut - len(before)


def test_words_of_a_text_are_not_taken_for_spellings():
    secrets = Secrets({"SHOP_API_KEY": "correct horse/battery", "DB_PASSWORD": "hunter22"})
    text = "the correct answer of a horse with a battery, hunted by hunters: %20 &amp; 68756e74 Y29ycmVjdA=="
    assert secrets.mask_text(text) is text
    assert secrets.open_tail(text) == 0
    assert secrets.open_tail(f"{text} corr") == len("corr")
