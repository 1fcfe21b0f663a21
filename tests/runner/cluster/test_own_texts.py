"""What is true on one worker only does not leave it."""

from __future__ import annotations

import json
import pickle

from evaltui.core.model.errors import ErrorInfo
from evaltui.runner.dask.masking import OwnTexts
from evaltui.runner.dask.messages import Ended, Happened, Printed, Scored, Started
from evaltui.runner.errors import RequestFailedError
from evaltui.runner.parent.pool import ExecutionResult
from evaltui.runner.protocol import FilesOpened

QUOTED = 'se"cret\\väl'
KEY = "sk-" + "a" * 40


def texts(tmp_path):
    here = tmp_path / "scratch" / "0123" / "project" / "agent"
    here.mkdir(parents=True)
    environment = {"ORDERS_TOKEN": "token-of-a-worker", "OTHER_KEY": QUOTED, "HOME": "/home/of-a-worker"}
    return OwnTexts(environment, here, tmp_path / "work" / "project" / "agent"), here


def test_secrets_and_the_folder_are_replaced_in_every_message(tmp_path):
    own, here = texts(tmp_path)
    there = tmp_path / "work" / "project"
    place = here.parent / "shared" / "tools.py"
    error = ErrorInfo("KeyError", f"no {QUOTED}", f'File "{place}", line 3', "tools.py:3 in price", kind=None)
    told = ErrorInfo(
        "KeyError",
        "no <OTHER_KEY>",
        f'File "{there / "shared" / "tools.py"}", line 3',
        "tools.py:3 in price",
        kind=None,
    )
    event = {"kind": "text", "content": [f"token-of-a-worker and {QUOTED} and {KEY}", str(place)]}
    clean = {
        "kind": "text",
        "content": [f"<ORDERS_TOKEN> and <OTHER_KEY> and {KEY}", str(there / "shared" / "tools.py")],
    }
    for escaped in (True, False):
        message = own.replaced(Happened(1, 2, json.dumps(event, ensure_ascii=escaped)))
        assert json.loads(message.text) == clean
    assert own.replaced(Printed(1, None, "stderr", "token-of-a-worker")).line == "<ORDERS_TOKEN>"
    ended = own.replaced(Ended(1, 2, ExecutionResult(error=error, state={"file": str(place)}), FilesOpened()))
    assert ended.ran == ExecutionResult(error=told, state={"file": str(there / "shared" / "tools.py")})
    failed = own.replaced(Scored(1, RequestFailedError(error), FilesOpened())).answer
    assert (failed.error, str(failed)) == (told, str(told))
    assert own.replaced(Scored(1, {"files": [str(place)]}, FilesOpened())).answer == {
        "files": [str(there / "shared" / "tools.py")]
    }


def test_messages_without_any_are_not_looked_through(tmp_path):
    own, here = texts(tmp_path)
    for text, is_there in (
        (KEY, False),
        ("/home/of-a-worker", False),
        ("token-of-a-worker", True),
        (str(here), True),
    ):
        assert own.are_in(pickle.dumps([Started(1, 2), Printed(1, 2, "stdout", text)])) is is_there
    for escaped in (True, False):
        assert own.are_in(pickle.dumps([Happened(1, 2, json.dumps({"text": QUOTED}, ensure_ascii=escaped))]))
    assert own.are_in(pickle.dumps([Printed(1, 2, "stdout", QUOTED)]))
