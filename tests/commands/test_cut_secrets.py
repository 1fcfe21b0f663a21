"""A secret that an agent streams or prints in pieces is not in a run's file, nor in a report."""

from __future__ import annotations

from evaltui.runs.run_file import RunFile
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set

KEY = "sk_live-quoted/Z9Z9Z9Z9"
TWO_LINES = "first-l1ne\nsecond-l1ne"
PRIVATE = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC/+=\n-----END RSA PRIVATE KEY-----"
AGENT = f"""
import os, sys

def root_agent(message, session):
    key = os.environ["SHOP_KEY"]
    sys.stdout.write("prints " + key[:9])
    sys.stdout.flush()
    sys.stdout.write(key[9:] + " in two pieces\\n")
    print("two lines: " + os.environ["LONG_TOKEN"] + ", and a key:")
    print({PRIVATE!r})
    print("printed all")
    yield from ["the key is s", "k_live-", key[8:] + ", not sk_l", "ove or s"]
"""


def test_no_piece_of_a_secret_is_left(write_agent, tmp_path, capfd):
    agent = write_agent(AGENT)
    first, second = TWO_LINES.split("\n")
    (agent / ".env").write_text(f'SHOP_KEY={KEY}\nLONG_TOKEN="{first}\\n{second}"\n')
    write_eval_set(agent, "shop", make_case("one", make_turn("hi")))
    html, report = tmp_path / "html", tmp_path / "json"
    call(
        "run", agent, "--workers", "1", f"--report=json={report}", f"--report=html={html}", "--report=console"
    )
    (log,) = (agent / ".evaltui" / "runs").glob("*.sqlite")
    printed = capfd.readouterr()
    stored = log.read_text(errors="replace")
    for text in (printed.out, printed.err, stored, html.read_text(), report.read_text()):
        for piece in (KEY[:9], KEY[9:], "live-", first, second, "MIIEow", "IBAAKC"):
            assert piece not in text
    lines = [event.data["text"] for event in RunFile(log).events_of_kinds("console")]
    assert [line for line in lines if line] == [
        "prints <SHOP_KEY> in two pieces",
        "two lines: <LONG_TOKEN>",
        ", and a key:",
        "<private key>",
        "printed all",
    ]
    texts = list(RunFile(log).events_of_kinds("text"))
    assert [event.content["parts"][0]["text"] for event in texts if event.data.get("partial")] == [
        "the key is <SHOP_KEY>",
        "",
        ", not sk_l",
        "ove or s",
    ]
    numbers = [event.seq for event in texts]
    assert numbers == sorted(numbers)
