import subprocess
import sys
import textwrap

import pytest
from pydantic import BaseModel

from evaltui.agents import bootstrap
from evaltui.agents.errors import RecordedError, error_from_json, error_to_json


class ServiceError(Exception):
    """Made from more than a message, as those of clients are."""

    def __init__(self, code, details, connection=None):
        self.code = code
        self.connection = connection
        super().__init__(f"{code}: {details}")


def raised(function, *args):
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


class Order(BaseModel):
    number: int
    lines: list[dict[str, int]]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyError("x"),
        ServiceError(429, "slow", object()),
        OSError(5, "down"),
        raised(open, "/no/such/file"),
        raised(Order.model_validate, {"number": "x", "lines": [{"a": None}]}),
    ],
)
def test_an_exception_comes_back_as_what_it_was(error):
    made = error_from_json(error_to_json(error))
    assert str(made) == str(error)
    assert type(made) is type(error)
    assert repr(made) == repr(error)
    assert getattr(made, "code", None) == getattr(error, "code", None)


def test_a_class_that_is_not_loaded_is_not_imported():
    made = error_from_json({"type": "antigravity:Fell.OverError", "message": "no"})
    assert isinstance(made, RecordedError)
    assert type(made).__name__ == "OverError"


@pytest.mark.parametrize("name", ["builtins:SystemExit", "builtins:print", "os:system"])
def test_what_is_no_exception_of_a_model_is_not_made(name):
    assert isinstance(error_from_json({"type": name, "message": "no"}), RecordedError)


IN_A_HOST = """
    import importlib, runpy, sys

    runpy.run_path(sys.argv[1])["make_known"]()
    errors = importlib.import_module("_evaltui.agents.errors")
    data = errors.error_to_json(errors.RecordedError("gone"))
    assert data["type"] == "evaltui.agents.errors:RecordedError", data
    assert type(errors.error_from_json(data)) is errors.RecordedError
"""


def test_recordings_have_evaltuis_own_errors_under_its_public_name():
    command = [sys.executable, "-c", textwrap.dedent(IN_A_HOST), bootstrap.__file__]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
