"""From text to token ids, with padding where the texts of a batch differ in length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from attnflow.errors import InputError, ModelError
from attnflow.extras import import_optional

TOKENIZER = "tokenizer.json"


class Encoded(NamedTuple):
    """Token ids of one text, shape (n,), or of several, shape (b, n), padded at the end.

    Attributes:
        ids: the number of each token in the vocabulary.
        mask: True (or 1) for tokens, False (or 0) for padding.
        types: the segment of each token; 0 everywhere for a single text.
    """

    ids: Int[np.ndarray, "*b n"]
    mask: Bool[np.ndarray, "*b n"]
    types: Int[np.ndarray, "*b n"]


def checked(given: Encoded) -> Encoded:
    """The same tokens with a boolean mask; raises if ids, mask or types are not valid.

    >>> checked(Encoded(np.array([5, 0]), np.array([1, 0]), np.array([0, 0]))).mask.tolist()
    [True, False]
    """
    ids, mask, types = (np.asarray(field) for field in given)
    shapes = [array.shape for array in (ids, mask, types)]
    if len(set(shapes)) > 1 or ids.ndim not in (1, 2) or not ids.size:
        raise InputError(
            "ids, mask and types must have the same shape, (n,) or (b, n), but their shapes are "
            f"{', '.join(map(str, shapes))}."
        )
    for name, numbers in {"ids": ids, "types": types}.items():
        if not np.issubdtype(numbers.dtype, np.integer):
            raise InputError(f"{name} must be whole numbers, but the dtype is {numbers.dtype}.")
    tokens = mask == 1
    if odd := sorted({repr(value) for value in mask[~tokens & (mask != 0)].tolist()}):
        raise InputError(
            f"mask must be 1 for tokens and 0 for padding, but it contains {', '.join(odd[:3])}."
        )
    if not tokens.any(axis=-1).all():
        raise InputError("mask must leave each text a token, but one text is all padding.")
    return Encoded(ids, tokens, types)


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder, with the truncation and padding saved in it turned off."""
    path = folder / TOKENIZER
    if not path.is_file():
        return None
    tokenizers = import_optional("tokenizers", "models", "the text of a model needs tokenizers")
    with _refusing(f"{path} is not a tokenizer"):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Turn what the library raises into a `ModelError`; its panics are not an `Exception`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ModelError(f"{error}.", where=what) from None


def encode(tokenizer: Any, texts: str | Sequence[str], padding: int) -> Encoded:
    """The tokens of one text or several, with the special tokens that the model adds.

    Args:
        tokenizer: the tokenizer of the `tokenizers` library.
        texts: a text, or a list of texts.
        padding: the id that fills up shorter texts.
    """
    single = isinstance(texts, str)
    each = [texts] if isinstance(texts, str) else list(texts)
    if not each or not all(isinstance(text, str) for text in each):
        raise InputError(f"texts must be a text or a list of texts, not {texts!r:.80}.")
    with _refusing("this model's tokenizer.json cannot tokenize texts"):
        found = tokenizer.encode_batch(each)
    lengths = [len(encoding.ids) for encoding in found]
    if not min(lengths):
        raise InputError(f"texts[{lengths.index(0)}] has no tokens: {each[lengths.index(0)]!r}.")
    shape = len(found), max(lengths)
    ids, types = np.full(shape, padding, np.int32), np.zeros(shape, np.int32)
    mask = np.arange(shape[1]) < np.asarray(lengths)[:, None]
    for row, encoding in enumerate(found):
        ids[row, : lengths[row]] = encoding.ids
        types[row, : lengths[row]] = encoding.type_ids
    return Encoded(*(array[0] if single else array for array in (ids, mask, types)))
