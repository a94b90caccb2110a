"""Wrong input in all its forms: values of every type, tables and files with something changed."""

import copy
import datetime
import json

from hypothesis import strategies as st

HUGE = [2**31 - 1, 2**31, 2**32, 10**10, 10**12, 2**63 - 1, 2**63, 2**64, 10**30, 10**400]
"""Sizes that nothing may be made of. None is so small that a large machine could try."""

whole = st.one_of(
    st.integers(-2, 9), st.sampled_from(HUGE), st.sampled_from(HUGE).map(lambda n: -n)
)
real = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, 1e-6, 1e-300, 5e-324, 1e15, 1e300, 1.8e308]),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.floats(width=32),
)
words = st.one_of(
    st.sampled_from(["", " ", "name", "SA", "[bold]", "0.5+1j", "..", "/", "{}", "\x00", "∞"]),
    st.text(max_size=8),
)
moments = st.sampled_from(
    [datetime.date(2024, 2, 29), datetime.time(1, 2), datetime.datetime(2024, 1, 1, 0, 0)]
)
plain = st.one_of(st.none(), st.booleans(), whole, real, words)


def deep(levels, kind=list):
    """A value inside a value inside a value."""
    made = 0.0
    for _ in range(levels):
        made = {"system": made, "name": "Noisy"} if kind is dict else [made]
    return made


nested = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)
matrices = st.lists(st.lists(st.one_of(real, whole), max_size=4), max_size=4)
deeply = st.builds(deep, st.sampled_from([5, 60, 400]), st.sampled_from([list, dict]))
anything = st.one_of(plain, nested, matrices, deeply)
"""Anything that JSON can hold."""


@st.composite
def mutated(draw, documents, values=anything, names=words, most=2):
    """One of the documents with one to `most` changes anywhere in it.

    A value is replaced, removed, put inside a list or doubled; a key is renamed or added, its new
    name most often one that is known somewhere.
    """
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, most))):
        places = list(_places(document))
        if not places:
            return draw(values)
        holder, key = draw(st.sampled_from(places))
        _change(draw, holder, key, values, names)
    return document


def _places(value):
    """Every place in tables and lists: what holds it, and its key there."""
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(min(len(value), 6)))
    else:
        return
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _change(draw, holder, key, values, names):
    kind = draw(st.sampled_from(["replace"] * 5 + ["remove", "wrap", "double", "rename", "add"]))
    if kind == "remove":
        del holder[key]
    elif kind == "wrap":
        holder[key] = [holder[key]]
    elif kind == "double":
        holder[key] = [holder[key], copy.deepcopy(holder[key])]
    elif kind in ("rename", "add") and isinstance(holder, dict):
        value = holder.pop(key) if kind == "rename" else draw(values)
        holder[draw(names)] = value
    else:
        holder[key] = draw(values)


PIECES = [
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\r", b"\n", b"\t", b'"',
    b"'", b'"""', b"[", b"]", b"[[", b"{", b"}", b"=", b",", b":", b".", b"#", b"\\u0000", b"\\",
    b"null", b"true", b"NaN", b"Infinity", b"-Infinity", b"nan", b"inf", b"1e999", b"-1", b"0",
    b"9" * 5000, b"99999999999999999999", b"[" * 2000, b'{"a":' * 2000, b"1979-05-27", b"../",
    b"[]", b"{}", b'""',
]  # fmt: skip
"""What a reader may stumble over."""


@st.composite
def mutated_bytes(draw, originals, most=4):
    """The bytes of one of the originals, cut, turned, filled or spliced."""
    data = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, most))):
        at, to = sorted(draw(st.integers(0, len(data))) for _ in range(2))
        kind = draw(st.sampled_from(["insert", "replace", "flip", "cut", "drop", "swap", "zero"]))
        if kind == "insert":
            data = data[:at] + draw(_piece) + data[at:]
        elif kind == "replace":
            piece = draw(_piece)
            data = data[:at] + piece + data[at + len(piece) :]
        elif kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at]
        elif kind == "drop":
            data = data[:at] + data[min(to, at + 64) :]
        elif kind == "swap":
            other = draw(st.sampled_from(originals))
            data = data[:at] + other[at:]
        else:
            data = data[:at] + bytes(min(to - at, 64)) + data[at + min(to - at, 64) :]
    return data


_piece = st.one_of(st.sampled_from(PIECES), st.binary(max_size=8))


def mutated_json(texts, most=3):
    """The bytes of JSON files: their tables changed, or their bytes."""
    tables = [json.loads(text) for text in texts]
    names = st.sampled_from(sorted({key for table in tables for key in _keys(table)})) | words
    written = mutated(tables, names=names, most=most).map(lambda v: json.dumps(v).encode())
    return written | mutated_bytes([text.encode() for text in texts]) | anything.map(_json)


def _json(value):
    return json.dumps(value).encode()


def _keys(value):
    """The keys of all tables in a value."""
    return {key for holder, key in _places(value) if isinstance(holder, dict)}
