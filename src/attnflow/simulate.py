"""An old name: what was the package `attnflow.simulate` is `attnflow.simulation` now."""

raise ImportError(
    "attnflow.simulate is called attnflow.simulation now; attnflow.simulate is the function.",
    name=__name__,
)
