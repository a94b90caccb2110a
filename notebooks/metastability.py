"""Metastability: clusters that live for exponentially long times."""

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
        # Metastability

        On the circle at large β, tokens gather fast into clusters that hardly feel each other. How
        long do they live? `Coarsening` merges tokens that have met into one of their joint mass,
        and then takes steps as long as the slow motion allows.
        """
    )
    return


@app.cell
def _(mo):
    largest = mo.ui.slider(8, 20, step=2, value=12, label="largest β", show_value=True)
    largest
    return (largest,)


@app.cell
def _(af, largest, np):
    betas = np.linspace(4.0, float(largest.value), 4)
    starts = af.initial.sphere(n=32, d=2, key=0, batch=8)
    runs = [af.simulate(af.SA(beta), starts, [0.0, 1e15], method=af.Coarsening()) for beta in betas]
    return betas, runs, starts


@app.cell
def _(mo):
    mo.md(
        """
        Each line is one start: the number of clusters against time, which goes over many decades.
        The times of merges are exact, from the merge tree.
        """
    )
    return


@app.cell
def _(betas, np, plt, runs):
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), sharey=True, layout="constrained")
    for ax, beta, run in zip(axes, betas, runs, strict=True):
        for times in np.sort(np.asarray(run.merges.time), axis=-1):
            met = times[np.isfinite(times) & (times > 0)]
            ax.step(met, 32 - np.arange(1, len(met) + 1), where="post", lw=1)
        ax.set(xscale="log", yscale="log", title=f"β = {beta:.3g}", xlabel="time")
    axes[0].set(ylabel="clusters")
    figure
    return


@app.cell
def _(np, runs):
    def last_merge(run):
        """The time of the last merge of each start."""
        times = np.asarray(run.merges.time)
        return np.where(np.isfinite(times), times, 0).max(axis=-1)

    lives = np.array([np.median(last_merge(run)) for run in runs])
    return last_merge, lives


@app.cell
def _(betas, lives, mo, np):
    rate = np.polyfit(betas, np.log(lives), 1)[0]
    mo.md(
        "The last merge, in the median over starts:\n\n| β | t |\n| --- | --- |\n"
        + "".join(f"| {b:.3g} | {t:.3g} |\n" for b, t in zip(betas, lives, strict=True))
        + f"\nIts logarithm grows by about **{rate:.2f}** for each unit of β. The last two "
        "clusters stand nearly opposite to each other, and attract with forces like e^(−2β): that "
        "alone would make it 2."
    )
    return (rate,)


if __name__ == "__main__":
    app.run()
