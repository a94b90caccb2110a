"""How often an attack is tried: a few hundred times by default, many thousands overnight.

    @tries(200, 10_000, st.floats())
    def test_something(x): ...

The same test code runs in both; `pytest -m overnight` chooses the larger count. By day examples are
the same in every run, at night they are new.
"""

import inspect

import pytest
from hypothesis import HealthCheck, given, settings


def tries(ci, overnight, *positional, **strategies):
    """`hypothesis.given` with one count for every day and one behind the marker `overnight`."""

    def decorate(test):
        parameters = inspect.signature(test).parameters
        last = list(parameters)[len(parameters) - len(positional) :]
        chosen = dict(zip(last, positional, strict=True)) | strategies
        runs = {count: _tried(test, count, chosen, count == ci) for count in (ci, overnight)}
        large = pytest.param(overnight, marks=pytest.mark.overnight)

        def counted(tries, **fixtures):
            runs[tries](**fixtures)

        free = [p for p in parameters.values() if p.name not in chosen]
        count = inspect.Parameter("tries", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        counted.__signature__ = inspect.Signature([count, *free])
        counted.__name__, counted.__doc__ = test.__name__, test.__doc__
        counted.__module__ = test.__module__
        counted.pytestmark = list(getattr(test, "pytestmark", []))
        return pytest.mark.parametrize("tries", [ci, large])(counted)

    return decorate


def _tried(test, count, strategies, same):
    chosen = settings(
        max_examples=count,
        derandomize=same,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    return chosen(given(**strategies)(test))
