"""Our contents read and write what google-genai's do."""

import json
import subprocess
import sys

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaltui.core.model.content import Content, FunctionCall, FunctionResponse, Part, UsageMetadata
from evaltui.core.model.eval_set import InvocationEvent
from evaltui.core.schemas.generating import schema_of

PAIRS = [
    (Content, types.Content),
    (Part, types.Part),
    (FunctionCall, types.FunctionCall),
    (FunctionResponse, types.FunctionResponse),
    (UsageMetadata, types.GenerateContentResponseUsageMetadata),
]

TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["", "ä€", "\ud800", "a\x00b"]))
NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.booleans(), st.none())
VALUES = st.recursive(
    TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(TEXTS, VALUES, max_size=3)


def some_of(fields):
    """An object with some of these fields; rarely with a value or a key that does not belong there."""
    usual = st.fixed_dictionaries({}, optional=fields)
    odd = st.fixed_dictionaries({}, optional=dict.fromkeys([*fields, "unknown"], VALUES))
    return st.one_of(usual, usual, usual, odd)


CALLS = some_of({"id": TEXTS, "name": TEXTS, "args": ARGS, "will_continue": st.booleans()})
RESPONSES = some_of(
    {
        "name": TEXTS,
        "response": ARGS,
        "scheduling": st.sampled_from(["SILENT", "silent"]),
        "parts": st.just([{"inline_data": {"data": "QUJD", "mime_type": "image/png"}}]),
    }
)
PARTS = st.one_of(
    some_of({"text": TEXTS, "thought": st.booleans(), "thought_signature": st.sampled_from(["QUJD", "!"])}),
    CALLS.map(lambda one: {"function_call": one}),
    RESPONSES.map(lambda one: {"functionResponse": one}),
    some_of({"inline_data": st.just({"data": "_-8=", "mimeType": "image/png"}), "part_metadata": ARGS}),
    st.sampled_from(
        [
            {"inlineData": {"data": "!"}},
            {"file_data": {"file_uri": "gs://a", "size": 1}},
            {"executable_code": {"code": "1", "language": "PYTHON"}},
            {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"video_metadata": {"fps": 2, "start_offset": "1s"}},
            {"function_call": None, "text": "a"},
        ]
    ),
    VALUES,
)
CONTENTS = st.one_of(
    st.fixed_dictionaries({"parts": st.lists(PARTS, max_size=3)}, optional={"role": TEXTS}), VALUES
)
USAGES = some_of(
    {
        "prompt_token_count": st.integers(0, 9) | st.just("3"),
        "totalTokenCount": st.integers(0, 9),
        "prompt_tokens_details": st.just([{"modality": "TEXT", "token_count": 3}]),
        "traffic_type": st.just("ON_DEMAND"),
    }
)


def read(model, data):
    """The model, or each place with what is wrong there."""
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return [(one["loc"], one["type"].split("_")[0]) for one in found]
    except AttributeError as error:
        # Its enums raise it for a list.
        return [str(error)]


def written(value):
    """What is written of a model, in every way that files are written; errors as they are."""
    if isinstance(value, list):
        return value
    return [
        value.model_dump_json(exclude_unset=True, exclude_defaults=True, exclude_none=True),
        value.model_dump_json(by_alias=True, exclude_none=True),
        value.model_dump(mode="json", exclude_none=True),
        value.model_dump(exclude_unset=True, exclude_none=True),
    ]


def without_kinds(value):
    return json.loads(json.dumps(value, default=str))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda one: one.__name__)
def test_fields_are_those_of_google_genai_in_their_order(ours, theirs):
    # Of an older version, ours know more; of a later one, ours read more.
    known = [name for name in ours.model_fields if name in theirs.model_fields]
    assert known == [name for name in theirs.model_fields if name in ours.model_fields]
    assert {"id", "text", "parts", "prompt_token_count"} & {*known}
    assert [ours.model_fields[name].alias for name in known] == [
        theirs.model_fields[name].alias for name in known
    ]


@given(CONTENTS)
def test_contents_are_read_and_written_as_by_google_genai(data):
    assert without_kinds(written(read(Content, data))) == without_kinds(written(read(types.Content, data)))


@given(USAGES)
def test_tokens_are_read_and_written_as_by_google_genai(data):
    theirs = types.GenerateContentResponseUsageMetadata
    assert without_kinds(written(read(UsageMetadata, data))) == without_kinds(written(read(theirs, data)))


@given(CONTENTS)
def test_data_that_is_parsed_is_read_as_its_text(data):
    ours = read(Content, data)
    if isinstance(ours, Content):
        assert Content.model_validate(data) == ours


@given(CONTENTS)
def test_contents_of_google_genai_are_read(data):
    theirs = read(types.Content, data)
    if isinstance(theirs, types.Content):
        ours = Content.model_validate(theirs)
        assert ours.model_dump_json(exclude_none=True) == theirs.model_dump_json(exclude_none=True)
        event = InvocationEvent(author="agent", content=theirs)
        assert event.content == ours


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda one: one.__name__)
def test_their_schemas_have_the_same_properties(ours, theirs):
    ours, theirs = schema_of(ours, "a"), schema_of(theirs, "a")
    assert ours["additionalProperties"] is theirs["additionalProperties"] is False
    for name in ours["properties"].keys() & theirs["properties"].keys():
        assert ours["properties"][name].keys() - {"description"} == theirs["properties"][name].keys() - {
            "description"
        }


def test_a_field_of_a_later_google_genai_is_read_and_others_are_not(monkeypatch):
    class Later(types.Part):
        later_field: dict[str, int] | None = None

    data = {"parts": [{"text": "a", "laterField": {"b": 1}}]}
    assert read(Content, data) == [(("parts", 0, "laterField"), "extra")]
    monkeypatch.setattr(types, "Part", Later)
    assert read(Content, data).model_dump(mode="json", exclude_none=True) == data
    assert read(Content, {"parts": [{"later": 1}]}) == [(("parts", 0, "later"), "extra")]


def test_a_field_of_a_later_google_genai_than_is_installed_is_unknown(monkeypatch):
    monkeypatch.delattr(types, "AudioMetadata", raising=False)
    assert read(Content, {"parts": [{"audio_metadata": {}}]}) == [(("parts", 0, "audio_metadata"), "extra")]


def test_texts_calls_and_tokens_are_read_without_importing_google_genai():
    event = {
        "author": "home",
        "content": {
            "parts": [
                {"text": "on", "thought": True, "thought_signature": "QUJD"},
                {"function_call": {"name": "switch", "args": {"on": [True, None, 1.5]}}},
                {"function_response": {"name": "switch", "response": {}}},
            ]
        },
        "usage_metadata": {"prompt_token_count": 3},
    }
    program = f"""
import sys
from evaltui.core.model.eval_set import InvocationEvent
InvocationEvent.model_validate_json({json.dumps(json.dumps(event))}).model_dump_json()
assert "google.genai" not in sys.modules
InvocationEvent.model_validate({{"author": "home", "grounding_metadata": {{"web_search_queries": ["a"]}}}})
assert "google.genai" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
