"""Tokens split over four devices, which are four threads of this machine, in a fresh process."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
import attnflow as af

kind = {"implicit": AxisType.Auto, "explicit": AxisType.Explicit}["KIND"]
mesh = jax.make_mesh((4,), ("tokens",), axis_types=(kind,))
split = NamedSharding(mesh, PartitionSpec("tokens"))
x = af.initial.sphere(2048, 3, key=0)
masses = np.linspace(1, 2, 2048)
system = af.SA(4.0, V=-1.0, backend="blocked")
velocity = jax.jit(lambda x, m: system.velocity(0.0, x, m))

def run(x):
    return af.simulate(system, x, [0.0, 0.2], method=af.Fixed(0.1)).final

def gap(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())

over_four = velocity(jax.device_put(x, split), jax.device_put(masses, split))
final = run(jax.device_put(x, split))
text = velocity.lower(jax.device_put(x, split), jax.device_put(masses, split)).compile().as_text()
print(json.dumps({
    "devices": len(jax.devices()),
    "drift": gap(over_four, velocity(x, masses)),
    "run": gap(final, run(x)),
    "parts": [len(a.sharding.device_set) for a in (over_four, final)],
    "rows": [a.addressable_shards[0].data.shape[0] for a in (over_four, final)],
    "whole_blocks": "f64[256,2048]" in text,
}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["implicit", "explicit"])
def test_tokens_split_over_devices_give_the_same_numbers(kind):
    flags = "--xla_force_host_platform_device_count=4"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("KIND", kind)],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["devices"] == 4
    assert seen["parts"] == [4, 4]
    assert seen["rows"] == [512, 512]
    assert seen["drift"] < 1e-12
    assert seen["run"] < 1e-12
    assert not seen["whole_blocks"]
