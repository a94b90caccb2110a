"""First steps: a run, what formed, and a temperature to play with."""

import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import attnflow as af
    from attnflow.plot import overview
    from attnflow.report import summarise

    return af, mo, np, overview, summarise


@app.cell
def _(mo):
    mo.md(
        """
        # First steps

        Thirty-two tokens on the sphere attend to each other. Move β, the inverse temperature: for
        small β they gather at once, for large β they rest in several clusters first.
        """
    )
    return


@app.cell
def _(mo):
    beta = mo.ui.slider(0.5, 12.0, step=0.5, value=6.0, label="β", show_value=True)
    key = mo.ui.number(0, 99, value=0, label="key of the start")
    mo.hstack([beta, key], justify="start")
    return beta, key


@app.cell
def _(af, beta, np, key):
    x0 = af.initial.sphere(n=32, d=3, key=int(key.value))
    run = af.simulate(af.SA(float(beta.value)), x0, np.geomspace(0.1, 300, 80))
    run
    return run, x0


@app.cell
def _(overview, run, summarise):
    report = summarise(run)
    overview(run, report)
    return (report,)


@app.cell
def _(af, beta, mo, np, run):
    energies = np.array([float(af.observe.energy(x, float(beta.value))) for x in run.xs])
    count = af.observe.clusters(run.final, tol=1e-2).count
    grows = bool(np.all(np.diff(energies) > -1e-9))
    mo.md(
        f"""
        At the end there are **{count}** clusters. The energy went from {energies[0]:.4g} to
        {energies[-1]:.4g}, and {"never fell" if grows else "fell somewhere"}: it may not,
        by Lemma 3.7 of *A mathematical perspective on Transformers*.
        """
    )
    return count, energies, grows


@app.cell
def _(mo):
    mo.md(
        """
        ## Who attends to whom

        Row i of the attention matrix says how token i weighs all others. Tokens of one cluster
        attend to each other, so with the tokens in the order of their clusters the matrix has
        blocks.
        """
    )
    return


@app.cell
def _(af, np, run):
    import matplotlib.pyplot as plt

    labels = np.asarray(af.observe.clusters(run.final, tol=1e-2).labels)
    order = np.argsort(labels, kind="stable")
    P = np.asarray(af.observe.attention(run.system, run.final))
    figure, ax = plt.subplots(figsize=(3.4, 3), layout="constrained")
    ax.imshow(P[np.ix_(order, order)], cmap="cividis", vmin=0)
    ax.set(xlabel="attended token", ylabel="token")
    figure
    return P, labels, order


if __name__ == "__main__":
    app.run()
