"""Names of schedulers, and what is said of them."""

from __future__ import annotations

import pytest

from evaltui.cli import main
from evaltui.project.run_settings import dask_address, is_scheduler, local_workers, warning_of


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
        *("host:80", 3, None, "tcp://a b:1", "tls://host:8786/", "inproc://x:1", "insecure-tls://host:1"),
    ],
)
def test_no_schedulers(text):
    assert not is_scheduler(text)


@pytest.mark.parametrize("host", ["10.0.0.7", "head", "[fe80::1]", "0.0.0.0"])
def test_beyond_loopback_plain_tcp_is_refused_unless_it_is_asked_for(host, capsys):
    assert not is_scheduler(f"tcp://{host}:8786")
    with pytest.raises(SystemExit, match="2"):
        main(["run", "nowhere", "--scheduler", f"tcp://{host}:8786"])
    (line,) = capsys.readouterr().err.splitlines()
    assert f"tcp://{host}:8786: without TLS" in line
    assert f"insecure-tcp://{host}:8786" in line
    insecure = f"insecure-tcp://{host}:8786"
    assert is_scheduler(insecure)
    assert dask_address(insecure) == f"tcp://{host}:8786"
    assert warning_of(insecure).startswith(f"{insecure}: without TLS")
    assert is_scheduler(f"tls://{host}:8786")
    assert warning_of(f"tls://{host}:8786") == ""


@pytest.mark.parametrize(
    "text",
    [
        *("local:3", "off", "tcp://127.0.0.1:1", "tcp://[::1]:1"),
        *("tcp://localhost:1", "tcp://LOCALHOST:1", "tcp://localhost.:1"),
    ],
)
def test_loopback_needs_no_tls(text):
    assert is_scheduler(text)
    assert warning_of(text) == ""
