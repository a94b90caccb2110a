"""Limit geometries: what forms without normalisation, and which theorem says so."""

import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import matplotlib.pyplot as plt
    import numpy as np

    import attnflow as af

    return af, mo, np, plt


@app.cell
def _(mo):
    mo.md(
        """
        # Limit geometries

        Without layer normalisation tokens run away like e^{tV}, and what is followed is z =
        e^{−tV} x. The eigenvalues of V decide what forms: *The emergence of clusters in
        self-attention dynamics* proves it for each row of its Table 1.
        """
    )
    return


@app.cell
def _(mo, np):
    choices = {
        "V = I": np.eye(2),
        "a simple leading eigenvalue": np.array([[0.647, 0.819], [0.612, 0.633]]),
        "a rotation, growing": np.array([[1.0, -0.7], [0.7, 1.0]]),
    }
    chosen = mo.ui.dropdown(list(choices), value="V = I", label="V")
    chosen
    return choices, chosen


@app.cell
def _(af, choices, chosen, mo):
    V = choices[chosen.value]
    proven = af.theory.limit_geometry(V=V)
    mo.md(f"**{proven.kind}** ({proven.theorem}): {proven.why}")
    return V, proven


@app.cell
def _(af, np):
    x0 = af.initial.cube(n=40, d=2, key=0)
    times = np.linspace(0.0, 8.0, 33)

    def follow(V):
        """Rescaled attention from the same start."""
        return af.simulate(af.RescaledAttention(V=V), x0, times)

    return follow, times, x0


@app.cell
def _(V, af, follow, np, plt):
    run = follow(V)
    figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
    paths = np.asarray(run.xs)
    ax.plot(paths[..., 0], paths[..., 1], color="0.8", lw=0.6)
    ax.scatter(*paths[-1].T, s=18, zorder=2)
    corners = af.observe.hull(paths[-1])
    ax.scatter(*paths[-1][corners.vertices].T, s=60, facecolors="none", edgecolors="C1", zorder=3)
    ax.set(aspect="equal", title=f"t = {run.ts[-1]:g}")
    figure
    return (run,)


@app.cell
def _(mo):
    mo.md(
        """
        ## All of them at once

        What is proven of each V, and what the run shows: the number of places where tokens are,
        and how far they are from the limit that the theorem names.
        """
    )
    return


@app.cell
def _(af, choices, follow, mo):
    seen = {}
    for name, matrix in choices.items():
        final = follow(matrix)
        seen[name] = (
            af.theory.limit_geometry(V=matrix).kind,
            af.observe.clusters(final.final, 1e-1).count,
            af.theory.measured_geometry(final),
        )
    mo.vstack([mo.md(f"**{name}**: {kind}; {found}") for name, (kind, _, found) in seen.items()])
    return (seen,)


if __name__ == "__main__":
    app.run()
