"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const percent = (x, digits = 2) => (x === null ? "undefined" : `${(100 * x).toFixed(digits)}\u00a0%`);
  const figures = (x) => `${Number((100 * x).toPrecision(3))}\u00a0%`; // three of them: 1/51 is 1.96 %, not 2.0 %
  const signed = (x) => `${x < 0 ? "\u2212" : "+"}${Math.abs(100 * x).toFixed(2)}`;

  /* Groups of rows with one confidence, and running sums over them; reporting/curves.py says how they are packed. */
  const unpack = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    let at = 0, code = 0;
    const next = () => {
      let number = 0, weight = 1, byte;
      do { byte = bytes[at++]; number += (byte & 127) * weight; weight *= 128; } while (byte > 127);
      return number;
    };
    const value = [], rows = [0], said = [0], positives = [0];
    while (at < bytes.length) {
      code += next();
      const first = next();
      const [count, right] = first < 2 ? [1, first] : [first, next()];
      const last = rows.length - 1;
      value.push(code / data.scale);
      rows.push(rows[last] + count);
      said.push(said[last] + count * (code / data.scale));
      positives.push(positives[last] + right);
    }
    return { value, rows, said, positives, n: rows[rows.length - 1] };
  };

  /* How many entries of an ascending list are at most (or, if `below`, smaller than) x. */
  const search = (list, x, below) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (below ? list[middle] < x : list[middle] <= x) low = middle + 1; else high = middle;
    }
    return low;
  };

  const sumsAt = (curve, group, share) => ["rows", "said", "positives"].map((name) =>
    curve[name][group] + (share ? share * (curve[name][group + 1] - curve[name][group]) : 0));

  const cutsOfWidth = (curve, bins) => Array.from({ length: bins + 1 }, (_, m) =>
    sumsAt(curve, m === 0 ? 0 : m === bins ? curve.value.length : search(curve.value, m / bins), 0));

  /* Cut by position; rows of one confidence that a cut divides share their outcomes evenly. */
  const cutsOfMass = (curve, bins) => {
    const size = Math.floor(curve.n / bins), more = curve.n % bins;
    return Array.from({ length: bins + 1 }, (_, m) => {
      const place = m * size + Math.min(m, more);
      const group = Math.min(search(curve.rows, place) - 1, curve.value.length);
      const inside = place - curve.rows[group];
      return sumsAt(curve, group, inside && inside / (curve.rows[group + 1] - curve.rows[group]));
    });
  };

  const binned = (curve, bins, scheme) => {
    const cuts = (scheme === "width" ? cutsOfWidth : cutsOfMass)(curve, bins);
    const made = [];
    let error = 0, largest = 0;
    for (let m = 0; m < bins; m++) {
      const [count, said, positives] = [0, 1, 2].map((i) => cuts[m + 1][i] - cuts[m][i]);
      if (!count) continue;
      const says = said / count, right = positives / count;
      error += Math.abs(said - positives) / curve.n;
      largest = Math.max(largest, Math.abs(says - right));
      const first = scheme === "width" ? m / bins : curve.value[search(curve.rows, cuts[m][0]) - 1];
      const last = scheme === "width" ? (m + 1) / bins : curve.value[search(curve.rows, cuts[m + 1][0], true) - 1];
      made.push({ low: first, high: last, count, says, right, positives });
    }
    return { bins: made, ece: error, mce: largest };
  };

  const wilson = (rate, n) => {
    const z = 1.96, scale = 1 + z * z / n, middle = (rate + z * z / (2 * n)) / scale;
    const half = z / scale * Math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n));
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  };

  const put = (parent, tag, attributes, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  };

  const said = data.words, rowsOf = (count, model) => Math.round(count / model.unit).toLocaleString("en");
  const words = (b, model) => `From ${percent(b.low, 1)} to ${percent(b.high, 1)}: ${said.says} ${percent(b.says, 1)}, ` +
    `${said.right} ${percent(b.right, 1)} (${rowsOf(b.count, model)} rows).`;

  const draw = (found, model) => {
    const host = $("diagram"), width = Math.max(280, Math.min(host.clientWidth || 640, 760));
    const left = 46, right = 10, top = 10, tall = Math.round(Math.min(width * 0.72, 440)), gap = 12, low = 84;
    const height = top + tall + gap + low + 42;
    const x = (v) => left + v * (width - left - right), y = (v) => top + (1 - v) * tall;
    const floor = top + tall + gap + low, most = Math.max(...found.bins.map((b) => b.count));
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": "sentence" }))
      svg.setAttribute(name, value);
    for (const v of [0, 0.25, 0.5, 0.75, 1]) {
      put(svg, "line", { x1: x(0), x2: x(1), y1: y(v), y2: y(v), class: "grid" });
      put(svg, "text", { x: left - 8, y: y(v) + 4, class: "axis end" }, `${100 * v}`);
      put(svg, "text", { x: x(v), y: floor + 18, class: `axis ${v === 1 ? "end" : "middle"}` }, `${100 * v}${v === 1 ? "\u00a0%" : ""}`);
    }
    put(svg, "text", { x: x(0.5), y: floor + 36, class: "axis middle" }, said.score_axis);
    put(svg, "text", { transform: `translate(12 ${y(0.5)}) rotate(-90)`, class: "axis middle" }, `${said.rate_axis}, %`);
    put(svg, "text", { x: x(0.03), y: y(0.93), class: "side" }, said.under);
    put(svg, "text", { x: x(0.97), y: y(0.05), class: "side end" }, said.over);
    const thin = found.bins.length > 60;
    for (const b of found.bins) {
      const x1 = x(b.low), wide = Math.max(x(b.high) - x1, 1.5), inset = thin || wide < 4 ? 0 : 0.75;
      const weight = 0.3 + 0.6 * Math.sqrt(b.count / most);
      put(svg, "rect", {
        x: x1 + inset, width: wide - 2 * inset, y: Math.min(y(b.says), y(b.right)),
        height: Math.abs(y(b.says) - y(b.right)), class: b.says > b.right ? "over" : "under", opacity: weight,
      });
      put(svg, "line", { x1: x1 + inset, x2: x1 + wide - inset, y1: y(b.right), y2: y(b.right), class: "right", opacity: thin ? weight : 1 });
      if (!thin) {
        const [from, to] = wilson(b.right, b.count / model.unit * model.effective);
        put(svg, "line", { x1: x1 + wide / 2, x2: x1 + wide / 2, y1: y(from), y2: y(to), class: "whisker" });
      }
      const bar = low * b.count / most, wrong = low * (b.count - b.positives) / most;
      put(svg, "rect", { x: x1 + inset, width: wide - 2 * inset, y: floor - bar, height: bar, class: "rows" });
      put(svg, "rect", { x: x1 + inset, width: wide - 2 * inset, y: floor - wrong, height: wrong, class: "wrong" });
    }
    put(svg, "line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "calibrated" });
    put(svg, "line", { x1: x(0), x2: x(1), y1: floor, y2: floor, class: "base" });
    put(svg, "text", { x: left - 8, y: floor - low + 10, class: "axis end" }, rowsOf(most, model));
    put(svg, "text", { x: left - 8, y: floor - 1, class: "axis end" }, "rows");
    for (const b of found.bins) {
      const area = put(svg, "rect", { x: x(b.low), width: Math.max(x(b.high) - x(b.low), 1.5), y: top, height: floor - top, class: "area" });
      put(area, "title", {}, words(b, model));
      area.addEventListener("mouseenter", () => { $("readout").textContent = words(b, model); });
    }
    host.replaceChildren(svg);
    $("readout").textContent = $("readout").dataset.rest;
  };

  const curves = new Map();
  const curveOf = (trial) => {
    if (!curves.has(trial)) curves.set(trial, unpack(trial.atoms));
    return curves.get(trial);
  };
  const chosen = () => {
    const model = data.models[$("model") ? $("model").selectedIndex : 0];
    const radio = document.querySelector(`[name="calibrator-${data.models.indexOf(model)}"]:checked`);
    return { model, trial: model.trials[Number(radio.value)], scheme: document.querySelector("[name=scheme]:checked").value,
      bins: Number($("bins").value) };
  };

  const show = () => {
    const { model, trial, scheme, bins } = chosen();
    const curve = curveOf(trial), found = binned(curve, bins, scheme);
    const says = curve.said[curve.said.length - 1] / curve.n, right = curve.positives[curve.positives.length - 1] / curve.n;
    const shown = { says: percent(says), right: percent(right), gap: `${signed(says - right)} points`,
      ece: percent(found.ece), mce: percent(found.mce), ...trial.numbers };
    for (const [id, text] of Object.entries(shown)) $(id).textContent = text;
    $("learned").textContent = trial.learned;
    $("sentence").textContent = `${data.models.length > 1 ? `${model.name}, ${trial.label}` : trial.label[0].toUpperCase() + trial.label.slice(1)}, ${bins} bins of equal ${scheme}: ` +
      `${said.says} ${percent(says, 1)} on average, ${said.right} ${percent(right, 1)}. Calibration error (ECE) ${percent(found.ece)}, ` +
      `largest gap of a bin (MCE) ${percent(found.mce)}.`;
    const body = document.createElement("tbody");
    for (const b of found.bins) {
      const row = body.insertRow();
      for (const text of [`${percent(b.low, 1)} to ${percent(b.high, 1)}`, rowsOf(b.count, model),
        percent(b.says), percent(b.right), signed(b.says - b.right)]) row.insertCell().textContent = text;
    }
    $("bin-rows").tBodies[0].replaceWith(body);
    draw(found, model);
  };

  /* Binary scores: rows at or above a threshold are called positive. */
  const cost = (name) => Math.max(0, Number($(`cost-${name}`).value) || 0);
  const outcome = (curve, group) => {
    const total = curve.positives[curve.positives.length - 1], missed = curve.positives[group], called = curve.n - curve.rows[group];
    const found = total - missed, alarms = called - found;
    return { called, found, alarms, total, each: (missed * cost("fn") + alarms * cost("fp")) / curve.n };
  };
  const decide = () => {
    const [model, trial] = $("cut-scores").value.split(",").map(Number);
    const curve = curveOf(data.models[model].trials[trial]), cut = Number($("cut").value);
    const made = outcome(curve, search(curve.value, cut - 2 / data.scale, true)); // rounded scores are off by less
    const share = (some, of) => (of ? percent(some / of, 1) : "none");
    $("cut-shown").textContent = figures(cut);
    $("cut-called").textContent = share(made.called, curve.n);
    $("cut-found").textContent = share(made.found, made.total);
    $("cut-precision").textContent = share(made.found, made.called);
    $("cut-alarms").textContent = share(made.alarms, curve.n - made.total);
    $("cut-cost").textContent = made.each.toFixed(4);
    let best = 0, least = Infinity;
    for (let group = 0; group <= curve.value.length; group++) {
      const { each } = outcome(curve, group);
      if (each < least) { least = each; best = group; }
    }
    const fair = cost("fp") / (cost("fn") + cost("fp"));
    const cheapest = best < curve.value.length ? `is at ${figures(curve.value[best])}` : "calls no row positive";
    $("cut-words").textContent = Number.isFinite(fair) ? `By these costs the threshold belongs at ${figures(fair)} if the scores are true. ` +
      `The cheapest on these very rows ${cheapest} and costs ${least.toFixed(4)} a row.` : "Give at least one cost above 0.";
  };
  const place = () => {
    const fair = cost("fp") / (cost("fn") + cost("fp"));
    if (Number.isFinite(fair)) $("cut").value = fair;
    decide();
  };

  const setBins = (value) => {
    const bins = Math.min(500, Math.max(5, Math.round(Number(value)) || data.bins));
    $("bins").value = $("bins-number").value = bins;
    show();
  };
  $("bins").addEventListener("input", (event) => setBins(event.target.value));
  $("bins-number").addEventListener("change", (event) => setBins(event.target.value));
  for (const input of document.querySelectorAll("#controls input[name=view]")) input.addEventListener("change", () => {
    const corp = input.value === "corp";
    $("corp").hidden = !corp;
    $("diagram").hidden = $("readout").hidden = corp;
    for (const part of [$("controls"), $("corp").closest(".diagram")]) part.classList.toggle("corp", corp);
  });
  for (const input of document.querySelectorAll("#controls input[type=radio]")) input.addEventListener("change", show);
  if ($("model")) $("model").addEventListener("change", () => {
    document.querySelectorAll("[data-model]").forEach((set, i) => { set.hidden = i !== $("model").selectedIndex; });
    show();
  });

  /* A link to a folded model unfolds it. */
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
  if (data.costs) {
    for (const name of ["cost-fn", "cost-fp"]) $(name).addEventListener("input", place);
    for (const name of ["cut", "cut-scores"]) $(name).addEventListener("input", decide);
  }

  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { $("theme").textContent = dark() ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; label(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  let width = 0;
  new ResizeObserver(() => { if ($("diagram").clientWidth !== width) { width = $("diagram").clientWidth; show(); } }).observe($("diagram"));
  document.documentElement.classList.add("live");
  label();
  setBins(data.bins);
  if (data.costs) place();
})();
