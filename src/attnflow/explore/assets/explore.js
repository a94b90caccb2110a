// What moves in the page without asking the server: the moment that is shown, playing, the theme.
window.dash_clientside = window.dash_clientside || {};

(function () {
  "use strict";
  const runs = {}; // by part: the frames of its run, unpacked, and the timer that plays them
  const delays = {}; // by part: milliseconds from one moment to the next
  const lastQueries = {}; // by path: the query of the address when one was there last
  const drawTimes = []; // milliseconds that it took to draw the last moments, for benchmarks
  window.attnflowDrawTimes = drawTimes;

  const DELAYS = { "½×": 160, "1×": 80, "2×": 40, "4×": 20 };
  const reducedMotion = window.matchMedia("(prefers-reduced-motion: reduce)");
  const plot = (id) => {
    const found = document.querySelector(`#${id} .js-plotly-plot`);
    return found && found.data && found.data.length ? found : null;
  };
  const partOf = (context) => context.inputs_list[0].id.split("-")[0];

  function unpack(text) {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }

  // The values of a matrix at a moment, from 0 to 255.
  const rowCount = (here) => here.frames.rows.length;
  const bytesAt = (here, k) => {
    const size = rowCount(here) ** 2;
    return here.bytes.subarray(k * size, (k + 1) * size);
  };

  function matrixAt(here, k) {
    const m = rowCount(here);
    const scale = here.frames.attention_top / 255;
    const flat = bytesAt(here, k);
    return Array.from({ length: m }, (_, i) =>
      Array.from(flat.subarray(i * m, (i + 1) * m), (entry) => scale * entry),
    );
  }

  // Plotly draws a plot anew when its data change, which takes too long while things move. So what
  // moves is pushed in what Plotly drew, and Plotly is told when it has come to rest.
  function pushTokens(at, place) {
    const trace = at._fullData[at._fullData.length - 1];
    if (place.length > 2) {
      const drawn = at._fullLayout.scene._scene.traces[trace.uid];
      [trace.x, trace.y, trace.z] = place;
      drawn.update(trace);
      return;
    }
    const { xaxis, yaxis } = at._fullLayout;
    const points = at.querySelectorAll(".scatterlayer .trace:last-child path.point");
    points.forEach((point, i) => {
      const to = `translate(${xaxis.c2p(place[0][i])},${yaxis.c2p(place[1][i])})`;
      point.setAttribute("transform", to);
    });
  }

  function pushOverlaps(at, heights) {
    const { xaxis, yaxis } = at._fullLayout;
    const { x, width } = at._fullData[0];
    const floor = yaxis.c2p(0);
    at.querySelectorAll(".barlayer .point path").forEach((bar, i) => {
      const left = xaxis.c2p(x[i] - width[i] / 2);
      const right = xaxis.c2p(x[i] + width[i] / 2);
      bar.setAttribute("d", `M${left},${floor}V${yaxis.c2p(heights[i])}H${right}V${floor}Z`);
    });
  }

  function shades(at) {
    const stops = at._fullData[0].colorscale.map(([v, text]) => [v, text.match(/\d+/g).map(Number)]);
    return Array.from({ length: 256 }, (_, i) => {
      const v = i / 255;
      const j = Math.max(1, stops.findIndex((stop) => stop[0] >= v));
      const [[low, a], [high, b]] = [stops[j - 1], stops[j]];
      return a.map((from, c) => from + ((b[c] - from) * (v - low)) / (high - low));
    });
  }

  function pushAttention(at, here, k) {
    const image = at.querySelector(".heatmaplayer image");
    if (!image) return;
    const m = rowCount(here);
    here.canvas = here.canvas || Object.assign(document.createElement("canvas"), { width: m, height: m });
    here.shades = here.shades || shades(at);
    const pen = here.canvas.getContext("2d", { willReadFrequently: true });
    const pixels = pen.createImageData(m, m);
    bytesAt(here, k).forEach((value, i) => pixels.data.set([...here.shades[value], 255], 4 * i));
    pen.putImageData(pixels, 0, 0);
    image.style.imageRendering = "pixelated";
    image.setAttribute("href", here.canvas.toDataURL());
  }

  function pushCursor(at, t) {
    const line = at.querySelector(".shapelayer path");
    const { xaxis, yaxis } = at._fullLayout;
    if (!line) return;
    const x = xaxis._offset + xaxis.c2p(t);
    line.setAttribute("d", `M${x},${yaxis._offset}V${yaxis._offset + yaxis._length}`);
  }

  function plotsOf(part) {
    const here = runs[part];
    return {
      tokens: plot(`${part}-tokens`),
      attention: here.bytes && plot(`${part}-attention`),
      overlaps: here.frames.overlaps && plot(`${part}-overlaps`),
      curves: [plot(`${part}-energy`), plot(`${part}-clusters`)].filter(Boolean),
    };
  }

  function show(part, k) {
    const here = runs[part];
    const { tokens, attention, overlaps, curves } = plotsOf(part);
    if (!tokens) return;
    const begun = performance.now();
    pushTokens(tokens, here.frames.positions[k]);
    if (attention) pushAttention(attention, here, k);
    if (overlaps) pushOverlaps(overlaps, here.frames.overlaps[k]);
    curves.forEach((at) => pushCursor(at, here.frames.ts[k]));
    drawTimes.push(performance.now() - begun);
    if (drawTimes.length > 200) drawTimes.shift();
    window.clearTimeout(here.rest);
    here.rest = window.setTimeout(() => redraw(part, k), 400);
  }

  // Lets Plotly know of a moment; the promise is that its tokens are drawn.
  function redraw(part, k) {
    const here = runs[part];
    const { tokens, attention, overlaps, curves } = plotsOf(part);
    if (!tokens || here.at !== k || here.timer) return null;
    const place = here.frames.positions[k];
    const moved = { x: [place[0]], y: [place[1]] };
    if (place.length > 2) moved.z = [place[2]];
    const drawn = window.Plotly.restyle(tokens, moved, [tokens.data.length - 1]);
    if (attention) window.Plotly.restyle(attention, { z: [matrixAt(here, k)] }, [0]);
    if (overlaps) window.Plotly.restyle(overlaps, { y: [here.frames.overlaps[k]] }, [0]);
    const t = here.frames.ts[k];
    curves.forEach((at) => window.Plotly.relayout(at, { "shapes[0].x0": t, "shapes[0].x1": t }));
    return drawn;
  }

  function pause(part) {
    window.clearTimeout(runs[part].timer);
    runs[part].timer = null;
    window.dash_clientside.set_props(`${part}-play`, { children: "Play" });
  }

  // A moment is asked for only when the one before is drawn, so a slow page does not fall behind.
  function playFrom(part, k) {
    const here = runs[part];
    const last = here.frames.ts.length - 1;
    here.asked = k;
    window.dash_clientside.set_props(`${part}-moment`, { value: k });
    if (k >= last) {
      pause(part);
      return;
    }
    here.timer = window.setTimeout(() => {
      window.requestAnimationFrame(() => {
        if (here.timer && document.getElementById(`${part}-moment`)) playFrom(part, here.at + 1);
      });
    }, delays[part] || DELAYS["1×"]);
  }

  function receive(part, sent) {
    const before = runs[part];
    if (before) window.clearTimeout(before.timer);
    const bytes = sent.attention ? unpack(sent.attention) : null;
    runs[part] = { frames: sent, bytes: bytes, timer: null, at: 0 };
    if (!before || before.frames.run !== sent.run) return true;
    runs[part].at = before.at;
    return false;
  }

  window.dash_clientside.explore = {
    move: function (k, sent) {
      if (!sent) return "";
      const part = partOf(window.dash_clientside.callback_context);
      const known = runs[part] && runs[part].frames === sent;
      const fresh = !known && receive(part, sent);
      const here = runs[part];
      const at = fresh ? 0 : Math.min(k || 0, here.frames.ts.length - 1);
      here.at = at;
      here.asked = null;
      window.requestAnimationFrame(() => show(part, at));
      if (fresh && !reducedMotion.matches) {
        window.dash_clientside.set_props(`${part}-play`, { children: "Pause" });
        playFrom(part, 0);
      }
      const clusters = here.frames.clusters[at];
      const word = clusters === 1 ? "cluster" : "clusters";
      return `${here.frames.label || "t ="} ${here.frames.ts[at]}, ${clusters} ${word}`;
    },

    speed: function (chosen) {
      delays[partOf(window.dash_clientside.callback_context)] = DELAYS[chosen];
      return window.dash_clientside.no_update;
    },

    play: function (clicks) {
      const part = partOf(window.dash_clientside.callback_context);
      const here = runs[part];
      if (!here || !clicks) return "Play";
      if (here.timer) {
        pause(part);
        return "Play";
      }
      playFrom(part, here.at + 1 < here.frames.ts.length ? here.at : 0);
      return "Pause";
    },

    png: function (clicks, id) {
      const at = plot(id);
      if (!clicks || !at) return window.dash_clientside.no_update;
      const part = partOf(window.dash_clientside.callback_context);
      const here = runs[part];
      if (here) {
        pause(part);
        here.at = here.asked ?? here.at; // it may be on its way to the slider, and is shown next
      }
      Promise.resolve(here && redraw(part, here.at)).then(() =>
        window.Plotly.downloadImage(at, { format: "png", scale: 2, filename: `attnflow-${id}` }),
      );
      return window.dash_clientside.no_update;
    },

    // The status of another job than the current one changes nothing: answers may come late.
    jobStatus: function (status, job) {
      const kept = window.dash_clientside.no_update;
      if (!job || !status || status.job !== job) return [kept, kept, kept, !job, kept];
      const { message, progress, over, finished } = status;
      return [message, progress, over ? "hidden" : "", over, finished || kept];
    },

    // A link leads to its part as one left it, that of the part that is shown to its beginning.
    links: function (path, search) {
      const outputs = window.dash_clientside.callback_context.outputs_list;
      lastQueries[path] = search || "";
      return outputs.map(({ id }) => {
        const to = id.replace("to-", "");
        return to === path ? to : to + (lastQueries[to] || "");
      });
    },

    typedField: (family) => (family === "typed" ? "field" : "field hidden"),

    sweepFields: function (store) {
      const outputs = window.dash_clientside.callback_context.outputs_list;
      return outputs.map(() => (store === "a new sweep" ? "field" : "field hidden"));
    },

    theme: function (clicks, now) {
      const next = clicks ? (now === "dark" ? "light" : "dark") : now || "light";
      return [next, next, next === "dark" ? "Light" : "Dark"];
    },
  };

  // Dash names a list by its value alone, and hides from readers what the Tab key reaches of it.
  function nameLists() {
    for (const list of document.querySelectorAll(".dash-dropdown[id]")) {
      const label = `label-${list.id}`;
      const named = list.getAttribute("aria-labelledby") || "";
      if (named.split(" ").includes(label) || !document.getElementById(label)) continue;
      list.setAttribute("aria-labelledby", `${label} ${named}`);
      const target = list.parentElement.querySelector(".dash-dropdown-focus-target");
      if (!target) continue;
      target.removeAttribute("aria-hidden");
      target.setAttribute("aria-labelledby", `${label} ${named}`);
    }
  }

  // Dash gives the handle of a slider no name, and makes it anew when its range changes.
  new MutationObserver(() => {
    for (const handle of document.querySelectorAll(".player [role=slider]:not([aria-label])")) {
      handle.setAttribute("aria-label", "Moment");
    }
    nameLists();
  }).observe(document.documentElement, { childList: true, subtree: true });

  // Enter in a field does what the first button of its form does.
  document.addEventListener("keydown", (event) => {
    const form = event.target.closest && event.target.closest("form.form");
    if (event.key !== "Enter" || !form || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    form.querySelector("button.primary").click();
  });
})();
