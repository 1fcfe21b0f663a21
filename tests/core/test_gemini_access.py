"""Which environments let google-genai reach a model: as its own client decides."""

import google.auth
import pytest
from google import genai
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError

from evaltui.core.metrics.gemini_access import gemini_access, is_gemini_name

_VALUES = {
    "GOOGLE_API_KEY": (None, "", "k"),
    "GEMINI_API_KEY": (None, "k"),
    "GOOGLE_GENAI_USE_VERTEXAI": (None, "true", "0"),
    "GOOGLE_GENAI_USE_ENTERPRISE": (None, "1", "false"),
    "GOOGLE_CLOUD_PROJECT": (None, "p"),
    "GOOGLE_CLOUD_LOCATION": (None, "europe-west1"),
    "GOOGLE_GEMINI_BASE_URL": (None, "https://localhost:1/"),
}
_ENVIRONMENTS = [{}]
for _name, _values in _VALUES.items():
    _ENVIRONMENTS = [
        {**one, **({} if value is None else {_name: value})} for one in _ENVIRONMENTS for value in _values
    ]


@pytest.mark.filterwarnings("ignore:Warning. Both")
@pytest.mark.parametrize("logged_in", [True, False])
def test_a_model_can_be_asked_where_a_client_can_be_made(logged_in, monkeypatch, caplog):
    caplog.set_level("ERROR")

    def default(**_):
        if not logged_in:
            raise DefaultCredentialsError("nobody has logged in")
        return AnonymousCredentials(), "project of the login"

    monkeypatch.setattr(google.auth, "default", default)
    # A certificate store for each of them would take longer than all the rest.
    monkeypatch.setattr("ssl.create_default_context", lambda *_, **__: None)
    wrong = []
    for environment in _ENVIRONMENTS:
        with monkeypatch.context() as patch:
            for name in _VALUES:
                patch.delenv(name, raising=False)
            for name, value in environment.items():
                patch.setenv(name, value)
            try:
                genai.Client()
            except (ValueError, DefaultCredentialsError):
                possible = False
            else:
                possible = True
        if possible is bool(gemini_access(environment, default_credentials=logged_in).problem):
            wrong.append(environment)
    assert wrong == []


def test_what_is_missing_is_said_with_what_to_do():
    without = gemini_access({}, default_credentials=False)
    assert without.problem == "GOOGLE_API_KEY is not set"
    assert without.fix == "Set it in .env"
    vertex = gemini_access({"GOOGLE_GENAI_USE_VERTEXAI": "True"}, default_credentials=False)
    assert "Vertex AI" in vertex.problem
    assert "GOOGLE_CLOUD_PROJECT" in vertex.fix


def test_a_server_of_the_users_choice_may_have_any_models():
    there = {"GOOGLE_GEMINI_BASE_URL": "http://localhost:4000", "GOOGLE_API_KEY": "k"}
    assert gemini_access(there, default_credentials=False).serves_other_names
    assert not gemini_access({"GOOGLE_API_KEY": "k"}, default_credentials=False).serves_other_names


@pytest.mark.parametrize(
    "name",
    [
        "gemini-2.5-flash",
        "gemini-2.5-pro-preview-05-06",
        "gemini-2.0-flash@001",
        "models/gemini-2.5-flash",
        "gemma-3-27b-it",
        "publishers/google/models/gemini-2.5-flash",
        "projects/p/locations/europe-west1/publishers/google/models/gemini-2.5-flash",
        "projects/p/locations/global/endpoints/123",
        "tunedModels/mine-1",
    ],
)
def test_names_of_gemini_models(name):
    assert is_gemini_name(name)


@pytest.mark.parametrize(
    "name", ["azure/gpt-4o", "gpt-4o", "gemini", "gemini/gemini-2.5-flash", "openai/gemini-2.5-flash", ""]
)
def test_names_of_others(name):
    assert not is_gemini_name(name)
