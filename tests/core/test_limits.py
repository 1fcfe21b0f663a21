"""Limits as they are written."""

from __future__ import annotations

import pytest

from evaltui.core.model.limits import Limit, limit_of, parse_limit


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("gemini-*:rpm=600", Limit("gemini-*", rpm=600)),
        ("*:tpm=1.5M, concurrent=8", Limit("*", tpm=1_500_000, concurrent=8)),
        ("ollama/llama3:8b:rpm=30k", Limit("ollama/llama3:8b", rpm=30_000)),
        ("a:tpm=1e6", Limit("a", tpm=1_000_000)),
    ],
)
def test_a_limit_is_read_and_shown(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit
    assert parse_limit(str(limit)) == limit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gemini",
        "rpm=600",
        ":rpm=600",
        "a:",
        "a:rpm",
        "a:rpm=",
        "a:rpm=0",
        "a:rpm=-1",
        "a:rpm=nan",
        "a:rpm=1e999",
        "a:rpm=1,rpm=2",
        "a:rps=1",
        "a:concurrent=1.5",
        "a:rpm=" + "9" * 5_000,
    ],
)
def test_what_is_no_limit_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"MODEL:rpm=N|above 0|twice|Known"):
        parse_limit(text)


@pytest.mark.parametrize("values", [{}, {"rpm": True}, {"rpm": "600"}, {"rpm": float("inf")}, {"rpm": None}])
def test_a_table_is_refused_too(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"limit|above 0"):
        limit_of("a", values)


@pytest.mark.parametrize(
    "model", ["gemini-2.5-flash", "models/gemini-2.5-flash", "vertex_ai/Gemini-2.5-flash"]
)
def test_a_pattern_is_of_the_name_with_and_without_its_provider(model: str) -> None:
    assert Limit("gemini-*", rpm=1).matches(model)
    assert not Limit("gpt-*", rpm=1).matches(model)


def test_shards_divide_a_limit() -> None:
    assert parse_limit("a:rpm=600,tpm=1M,concurrent=3").divided_by(8) == Limit("a", 75, 125_000, 1)
