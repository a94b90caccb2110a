"""`Model`: a trained Transformer, made of one of this library's systems and a tokenizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import require_count, require_memory
from attnflow.errors import InputError, ModelError
from attnflow.models import running, variants
from attnflow.models.embedding import Embedding
from attnflow.models.encoding import TOKENIZER, Encoded, checked, encode
from attnflow.systems import PostNormTransformer, PreNormTransformer
from attnflow.weights.norms import Norm

Texts = str | Sequence[str] | Encoded


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A trained Transformer as `load` returns it.

    `system` moves the tokens. It is a system like any other: layer k of the model is
    `system.layer(k, x, 1.0)`, its attention is `observe.attention(system, x, t=k)`, and
    `simulate(system, model.embed(text), ts, method=Layers(1.0))` runs it.

    Attributes:
        name: the name or folder that the model was loaded from.
        config: the contents of config.json.
        tokenizer: the tokenizer; None if the folder has none.
        embedding: where tokens start.
        system: a `PostNormTransformer` (ALBERT, BERT and its kin) or a `PreNormTransformer`
            (GPT-2, Llama, Mistral). Its weights are `PerLayer`, or constant if all layers share
            them.
        layers: number of layers that the model was trained with.
        final_norm: applied once after the last layer (GPT-2, Llama, Mistral); None for none.
        shared: whether all layers have the same weights (ALBERT).

    >>> import attnflow as af
    >>> words = Embedding(words=jnp.eye(4))
    >>> model = Model("toy", {}, None, words, af.PreNormTransformer(V=0.0, w=1.0), layers=2)
    >>> ids = np.array([1, 3])
    >>> model.states(Encoded(ids, mask=ids > 0, types=0 * ids)).shape
    (3, 2, 4)
    """

    name: str
    config: dict[str, Any]
    tokenizer: Any
    embedding: Embedding
    system: PostNormTransformer | PreNormTransformer
    layers: int
    final_norm: Norm | None = None
    shared: bool = False

    def encode(self, texts: Texts) -> Encoded:
        """Token ids, mask and types: shape (n,) for one text, (b, n) for several."""
        if not isinstance(texts, Encoded):
            if self.tokenizer is None:
                raise ModelError(
                    f"{self.name} has no {TOKENIZER}, so it cannot tokenize texts: pass token ids "
                    "as Encoded(ids, mask, types)."
                )
            texts = encode(self.tokenizer, texts, self.padding)
        encoded = checked(texts)
        self._check(encoded)
        return encoded

    @property
    def padding(self) -> int:
        """The id of the token that fills up shorter texts."""
        given = self.embedding.padding
        given = self.config.get("pad_token_id") if given is None else given
        if isinstance(given, int) and 0 <= given < len(self.embedding.words):
            return given
        return 0

    def tokens(self, text: str | Encoded) -> list[str]:
        """The tokens of one text, as the vocabulary spells them."""
        encoded = self.encode(text)
        if encoded.ids.ndim != 1:
            raise InputError("tokens takes one text: call it once for each text.")
        return [self.tokenizer.id_to_token(int(number)) for number in encoded.ids]

    def embed(self, texts: Texts) -> Float[Array, "*b n d"]:
        """Where the tokens start: shape (n, d), or (b, n, d) for several texts."""
        encoded = self.encode(texts)
        return running.starts(self.embedding, jnp.asarray(encoded.ids), jnp.asarray(encoded.types))

    def states(
        self, texts: Texts, *, depth: int | None = None, dt: float | int = 1.0
    ) -> Float[Array, "*b T n d"]:
        """The tokens before the first layer and after each: (layers + 1, n, d).

        Several texts give (b, layers + 1, n, d). `encode(texts).mask` tells which tokens are
        padding; no token attends to those. The states are those of the residual stream: `output`
        applies `final_norm` to the last one.

        Args:
            texts: a text, a list of texts, or token ids as `Encoded`.
            depth: number of layers. By default `layers`, which is also the most, unless all layers
                share their weights.
            dt: scales the residual update, at most 1. Each layer then takes 1/dt steps, and all
                of them are returned. Post-norm layers do not approach a flow as dt → 0.
        """
        steps = self._steps(depth, dt)
        encoded = self.encode(texts)
        x = self.embed(encoded)
        self._check_memory(x, steps)
        masses = None if encoded.mask.all() else jnp.asarray(encoded.mask, x.dtype)
        return running.layers(self.system, x, masses, jnp.asarray(dt, x.dtype), steps)

    def output(self, x: Float[Array, "*b n d"]) -> Float[Array, "*b n d"]:
        """The model's output for the tokens x after the last layer."""
        if self.final_norm is None:
            return x
        return self.final_norm(0.0, x.reshape(-1, x.shape[-1])).reshape(x.shape)

    def variant(
        self,
        *,
        feed_forward: bool = True,
        biases: bool = True,
        gains: bool = True,
        heads: Sequence[int] | None = None,
    ) -> Model:
        """The model without some of its parts, on the way to the papers' idealisation.

        The embedding and `final_norm` stay as they are.

        Args:
            feed_forward: False leaves only attention.
            biases: False drops everything that a layer adds: biases of heads and of the
                feed-forward layer, and the shifts of norms.
            gains: False drops the trained diagonal of norms: normalised tokens have length √d.
            heads: the heads of each layer to keep, such as [0, 3]. All of them by default.
        """
        system = self.system
        system = system if feed_forward else variants.without_feed_forward(system)
        system = system if biases else variants.without_biases(system)
        system = system if gains else variants.without_gains(system)
        system = system if heads is None else variants.with_heads(system, heads)
        return dataclasses.replace(self, system=system)

    def __repr__(self) -> str:
        """Its name, how many layers of which width, and what kind of system it is."""
        kind = self.config.get("model_type")
        shared = ", shared" if self.shared else ""
        return (
            f"Model({self.name!r}, {kind}, layers={self.layers}{shared}, "
            f"d={self.system.heads.dim}, {self.system!r})"
        )

    def _check(self, encoded: Encoded) -> None:
        """Raise if a token has no row in the tables: indexing would silently take another one."""
        n, longest = encoded.ids.shape[-1], self.embedding.longest
        if longest is not None and n > longest:
            raise InputError(
                f"texts have up to {n} tokens, but {self.name} takes at most {longest}: cut them."
            )
        tables = {"ids": self.embedding.words, "types": self.embedding.types}
        for field, table in tables.items():
            numbers = getattr(encoded, field)
            if table is not None and not np.all((numbers >= 0) & (numbers < len(table))):
                raise InputError(
                    f"{field} contains {int(numbers.max())}, but the table of {self.name} ends at "
                    f"{len(table) - 1}: do the tokenizer and the weights belong together?"
                )

    def _steps(self, depth: int | None, dt: float | int) -> int:
        depth = self.layers if depth is None else require_count(depth, "depth")
        if depth > self.layers and not self.shared:
            raise InputError(
                f"depth must be at most {self.layers}, because each layer of {self.name} has its "
                f"own weights, but it is {depth}. Only layers that share weights go deeper."
            )
        steps = round(depth / dt) if 0 < dt <= 1 else 0
        if not steps or abs(steps * dt - depth) > 1e-6 * depth:
            raise InputError(
                f"dt must be at most 1 and divide depth = {depth} into whole steps, but it is "
                f"{dt!r}."
            )
        return steps

    def _check_memory(self, x: Float[Array, "*b n d"], steps: int) -> None:
        texts = x.size // (x.shape[-2] * x.shape[-1])
        held = 2 * (steps + 1) * x.size + 3 * texts * self.system.cost(x.shape[-2]).held
        require_memory(
            held * x.dtype.itemsize,
            f"{steps} layers of {texts} texts of {x.shape[-2]} tokens",
            "take fewer texts, or fewer layers",
        )
