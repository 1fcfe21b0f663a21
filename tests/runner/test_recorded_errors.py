import pytest

from evaltui.runner.errors import RecordedError, error_from_json, error_to_json


class ServiceError(Exception):
    """Made from more than a message, as those of clients are."""

    def __init__(self, code, details, connection=None):
        self.code = code
        self.connection = connection
        super().__init__(f"{code}: {details}")


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyError("x"), ServiceError(429, "slow", object()), OSError(5, "down")]
)
def test_an_exception_comes_back_as_what_it_was(error):
    made = error_from_json(error_to_json(error))
    assert str(made) == str(error)
    assert type(made).__name__ == type(error).__name__
    assert getattr(made, "code", None) == getattr(error, "code", None)


def test_a_class_that_is_not_loaded_is_not_imported():
    made = error_from_json({"type": "antigravity:Fell.OverError", "message": "no"})
    assert isinstance(made, RecordedError)
    assert type(made).__name__ == "OverError"


@pytest.mark.parametrize("name", ["builtins:SystemExit", "builtins:print", "os:system"])
def test_what_is_no_exception_of_a_model_is_not_made(name):
    assert isinstance(error_from_json({"type": name, "message": "no"}), RecordedError)
