"""The loop over steps, compiled without a call back to the host, so that JAX can keep it on disk.

The steps, their error control and the states between them are diffrax's. Its `diffeqsolve` would
check times by calling Python from the compiled program, and such a program is never cached; here
the host has checked them before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import diffrax
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

END_SLACK = 100
"""A step that would end within so many units of rounding before the last time ends there."""

Value = Callable[[Any, Any], Any]
"""What is saved of a state y at the time t."""


def take_steps(
    parts: Any, at: Any, ts: Float[Array, " T"], value: Value, steps: Any, progress: Any
) -> Any:
    """The state after at most `steps` more steps towards the last of ts.

    Args:
        parts: the term, the solver and the controller.
        at: the state of the integration.
        ts: the times at which something is saved, shape (T,).
        value: what is saved of a state.
        steps: how many steps may be tried, whether they are accepted or rejected.
        progress: a progress meter of diffrax.
    """
    end, limit = ts[-1], at.accepted + at.rejected + steps
    nearly = end - END_SLACK * (end - eqxi.prevbefore(end))

    def going(at: Any, _: Any) -> Bool[Array, ""]:
        return (at.t < end) & ~at.failed & (at.accepted + at.rejected < limit)

    def step(at: Any, t1: Any) -> Any:
        at, t_next = _step(parts, at, t1, ts, value)
        # After a rejected step the rest is halved at least, so that it is not tried again.
        last = jnp.where(at.t >= t1, end, at.t + 0.5 * (end - at.t))
        return at, jnp.where(t_next > nearly, last, t_next)

    return repeat(going, step, at, jnp.minimum(at.t + at.dt, end), ts, progress)


def repeat(going: Any, step: Any, at: Any, extra: Any, ts: Array, progress: Any) -> Any:
    """The state after as many steps as `going` allows.

    Args:
        going: whether there is another step from (at, extra).
        step: the next (at, extra).
        at: the state of the integration.
        extra: what else a step hands to the next.
        ts: the times from the first to the last, for the meter.
        progress: a progress meter of diffrax.
    """

    def body(carry: Any) -> Any:
        at, extra, meter = carry
        at, extra = step(at, extra)
        return at, extra, progress.step(meter, (at.t - ts[0]) / (ts[-1] - ts[0]))

    at, _, meter = eqxi.while_loop(
        lambda carry: going(*carry[:2]),
        body,
        (at, extra, progress.init()),
        kind="lax",
        buffers=lambda carry: carry[0].saved,
    )
    progress.close(meter)
    return at


def _step(parts: Any, at: Any, t1: Any, ts: Array, value: Value) -> tuple[Any, Any]:
    """The state after a step to t1, or with a shorter one to try; and where the next would end."""
    jump = at.made_jump if parts.controller.breaks else False
    y1, error, dense, inner, result = parts.solver.step(
        parts.term, at.t, t1, at.y, None, at.solver_state, jump
    )
    order = parts.solver.error_order(parts.term)
    good, t, t_next, jump, control, stuck = parts.controller.adapt_step_size(
        at.t, t1, at.y, y1, None, error, order, at.controller_state
    )
    good, fine = jnp.asarray(good), diffrax.RESULTS.successful
    path = parts.solver.interpolation_cls(t0=at.t, t1=t1, **dense)
    saved, count = save_due(
        at,
        len(ts),
        lambda count: good & (ts[count] <= t1),
        lambda count: value(ts[count], path.evaluate(ts[count])),
    )
    y, inner, jump = jax.tree.map(
        lambda a, b: jnp.where(good, a, b),
        (y1, inner, jnp.asarray(jump)),
        (at.y, at.solver_state, at.made_jump),
    )
    after = dataclasses.replace(
        at,
        t=jnp.minimum(t, ts[-1]),
        y=y,
        dt=t_next - t,
        solver_state=inner,
        controller_state=control,
        made_jump=jump,
        saved=saved,
        count=count,
        accepted=at.accepted + good.astype(at.accepted.dtype),
        rejected=at.rejected + (~good).astype(at.rejected.dtype),
        failed=(stuck != fine) | (good & (result != fine)),
    )
    return after, t_next


def save_due(
    at: Any,
    T: int,
    due: Callable[[Array], Bool[Array, ""]],
    value: Callable[[Array], Any],
) -> tuple[Any, Int[Array, ""]]:
    """What has been saved, with all that is due now, and how many of the T values that is.

    Args:
        at: the state of the integration.
        T: how many values are saved in all.
        due: whether value number k is due.
        value: value number k.
    """

    def more(state: Any) -> Bool[Array, ""]:
        _, count = state
        return (count < T) & due(jnp.minimum(count, T - 1))

    def save(state: Any) -> Any:
        saved, count = state
        return jax.tree.map(lambda a, b: b.at[count].set(a), value(count), saved), count + 1

    start = (at.saved, at.count)
    return eqxi.while_loop(more, save, start, kind="lax", buffers=lambda state: state[0])
