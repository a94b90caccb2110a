"""The alternatives: PyTorch, KeOps, NumPy, plain JAX.

Each is written for speed, the way its users would write it, and computes the same velocity from the
same tokens in the same precision. All may use every core.
"""

from __future__ import annotations

import abc
import contextlib
import io
import os
import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.bench.contenders import Call, Contender, DriftProblem
from attnflow.checks import available_cores
from attnflow.errors import InputError


def tangential(x: Any, means: Any) -> Any:
    """The means projected to the tangent space at each token, for any array library."""
    return means - x * (x * means).sum(-1)[..., None]


class Numpy(Contender):
    """All scores at once in plain NumPy."""

    name = "NumPy"

    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        def call() -> np.ndarray:
            scores = problem.beta * (x @ x.mT)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return tangential(x, weights @ x / weights.sum(axis=-1, keepdims=True))

        return call


class JaxDense(Contender):
    """`softmax(β x xᵀ) x` in plain JAX under jit."""

    name = "JAX dense"

    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        def velocity(x: Array) -> Array:
            weights = jax.nn.softmax(problem.beta * (x @ x.mT), axis=-1)
            return tangential(x, weights @ x)

        tokens = jnp.asarray(x)
        compiled = jax.jit(velocity).lower(tokens).compile()
        return lambda: compiled(tokens).block_until_ready()


class Torch(Contender):
    """What the PyTorch contenders share."""

    package = "torch"

    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        import torch

        torch.set_num_threads(available_cores())
        tokens = torch.from_numpy(x)

        def call() -> Any:
            with torch.inference_mode():
                return tangential(tokens, self.means(tokens, problem.beta))

        return call

    @abc.abstractmethod
    def means(self, x: Any, beta: float) -> Any:
        """The means `Σ_j softmax(β <x_i, x_j>)_j x_j`."""


class TorchAttention(Torch):
    """PyTorch's fused `scaled_dot_product_attention`.

    Tokens have a head axis: without it PyTorch is several times slower.
    """

    name = "PyTorch SDPA"

    def means(self, x: Any, beta: float) -> Any:
        from torch.nn.functional import scaled_dot_product_attention

        head = x[:, None]
        return scaled_dot_product_attention(head, head, head, scale=beta)[:, 0]


class TorchMatmul(Torch):
    """PyTorch's batched matrix product, softmax, matrix product."""

    name = "PyTorch matmul"

    def means(self, x: Any, beta: float) -> Any:
        import torch

        return torch.softmax((beta * x) @ x.mT, dim=-1) @ x


class KeOps(Contender):
    """KeOps on the CPU: scores are formulas that are never stored.

    It may use what attnflow knows: scores are at most β, and a column of ones gives the row sums.
    This is slightly faster than its own `sumsoftmaxweight`.
    """

    name = "KeOps"
    package = "pykeops"

    def missing(self) -> str | None:
        """It needs a C++ compiler besides its package."""
        compilers = (os.environ.get("CXX", "g++"), "g++", "clang++")
        if super().missing() is None and not any(map(shutil.which, compilers)):
            return "no C++ compiler"
        return super().missing()

    def prepare(self, problem: DriftProblem, x: Float[np.ndarray, "replicates n d"]) -> Call:
        if len(x) > 1:
            raise InputError("KeOps takes part only with a single system.")
        self._call(problem, x[0, :16])()  # compiles its formula
        return self._call(problem, x[0])

    def _call(self, problem: DriftProblem, x: Float[np.ndarray, "n d"]) -> Call:
        LazyTensor = _lazy_tensor()
        values = np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1)

        def call() -> np.ndarray:
            scores = problem.beta * ((LazyTensor(x[:, None]) | LazyTensor(x[None, :])) - 1)
            sums = scores.exp() @ values
            return tangential(x, sums[:, :-1] / sums[:, -1:])[None]

        return call


def _lazy_tensor() -> Any:
    """KeOps' class, without the messages that would break the table."""
    with contextlib.redirect_stdout(io.StringIO()):
        import pykeops
        from pykeops.numpy import LazyTensor

        pykeops.set_verbose(False)
    return LazyTensor


NUMPY, JAX_DENSE, KEOPS = Numpy(), JaxDense(), KeOps()
SDPA, MATMUL = TorchAttention(), TorchMatmul()
PEERS: tuple[Contender, ...] = (SDPA, MATMUL, KEOPS, JAX_DENSE, NUMPY)
"""Everything that attnflow is compared with."""
