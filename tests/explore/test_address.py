import contextlib
from typing import Annotated, Literal
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from attnflow.errors import InputError
from attnflow.explore.address import MAX_FIELDS, Address


class View(Address):
    text: Annotated[str, Field(max_length=50)] = "some"
    n: Annotated[int, Field(ge=1, le=2000)] = 3
    t: Annotated[float, Field(gt=0, lt=100)] = 2.0
    kind: Literal["plain", "at & = ?"] = "plain"

    def check(self):
        if self.n == 13:
            raise InputError("n: 13 brings bad luck.")


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
VIEWS = st.builds(
    View,
    text=WORDS,
    n=st.integers(1, 2000).filter(lambda n: n != 13),
    t=st.floats(0, 100, exclude_min=True, exclude_max=True),
    kind=st.sampled_from(["plain", "at & = ?"]),
)


@settings(deadline=None)
@given(VIEWS)
def test_an_address_gives_the_view_again(view):
    assert View.from_address(view.address()) == view


@settings(deadline=None)
@given(VIEWS, WORDS, WORDS)
def test_what_it_does_not_know_is_left_alone(view, name, value):
    if name not in View.model_fields:
        more = f"{view.address() or '?'}&{quote(name)}={quote(value)}"
        assert View.from_address(more) == view


@settings(deadline=None)
@given(st.text())
def test_any_address_gives_a_view_or_a_sentence(query):
    with contextlib.suppress(InputError):
        assert isinstance(View.from_address(query), View)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*View.model_fields]), st.integers() | st.text()))
def test_any_field_gives_a_view_or_a_sentence_that_names_it(fields):
    said = ""
    try:
        View.read(fields)
    except InputError as error:
        said = str(error)
    assert not said or said.split(":")[0] in fields


def test_defaults_are_not_said():
    assert View().address() == ""
    assert View(n=5).address() == "?n=5"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n": 0}, "n: input should be greater than or equal to 1, but it is '0'."),
        ({"n": 2001}, "n: input should be less than or equal to 2000, but it is '2001'."),
        ({"n": "four"}, "n: input should be a valid integer"),
        ({"n": 2.5}, "n: input should be a valid integer"),
        ({"t": float("nan")}, "t: input should be less than 100, but it is 'nan'."),
        ({"t": float("inf")}, "t: input should be less than 100"),
        ({"kind": "other"}, "kind: input should be 'plain' or 'at & = ?', but it is 'other'."),
        ({"text": "a" * 51}, "text: string should have at most 50 characters"),
        ({"text": ["a"]}, "text: input should be a valid string"),
        ({"size": 5}, "size: extra inputs are not permitted"),
        ({"n": 13}, "n: 13 brings bad luck."),
    ],
)
def test_what_is_wrong_and_why(fields, said):
    with pytest.raises(InputError) as error:
        View.read(fields)
    assert str(error.value).startswith(said)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("n", "n: empty, or no whole number from 1 to 2,000."),
        ("t", "t: empty, or no number above 0 below 100."),
        ("kind", "kind: empty."),
    ],
)
def test_an_empty_field_is_not_its_default(name, said):
    """A browser sends nothing for a number beyond its bounds."""
    with pytest.raises(InputError) as error:
        View.read({name: None})
    assert str(error.value) == said


def test_an_address_without_end():
    with pytest.raises(InputError, match=f"more than {MAX_FIELDS} fields"):
        View.from_address("?" + "&".join("a=1" for _ in range(MAX_FIELDS + 1)))
