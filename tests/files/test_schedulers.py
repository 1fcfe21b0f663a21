"""Names of schedulers, and what is said of them."""

from __future__ import annotations

import pytest

from evaltui.files.schedulers import is_scheduler, local_workers, warning_of


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ("local:1", 1),
        ("local:64", 64),
        ("tcp://127.0.0.1:8786", None),
        ("tls://[::1]:8786", None),
        ("off", None),
    ],
)
def test_schedulers(text, workers):
    assert is_scheduler(text)
    assert local_workers(text) == workers


@pytest.mark.parametrize(
    "text",
    [
        *("", "local", "local:0", "local:-1", "local:2 ", "tcp://", "tcp://host", "http://host:80"),
        *("host:80", 3, None, "tcp://a b:1", "tcp://host:8786/", "inproc://x:1"),
    ],
)
def test_no_schedulers(text):
    assert not is_scheduler(text)


@pytest.mark.parametrize("host", ["10.0.0.7", "head", "[fe80::1]", "0.0.0.0"])
def test_beyond_loopback_plain_tcp_is_warned_of_in_a_line(host):
    warning = warning_of(f"tcp://{host}:8786")
    assert warning.startswith(f"tcp://{host}:8786: without TLS")
    assert "\n" not in warning
    assert warning_of(f"tls://{host}:8786") == ""


@pytest.mark.parametrize(
    "text", ["local:3", "off", "tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1"]
)
def test_loopback_needs_no_tls(text):
    assert warning_of(text) == ""
