(() => {
  const c = calibrant, ROWS = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000], SAMPLES = 100;
  const XS = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const PRESETS = {
    over: [0.02, 0.1, 0.24, 0.42, 0.6, 0.82], calibrated: XS, under: [0.16, 0.38, 0.58, 0.76, 0.92, 0.99],
    wave: [0.12, 0.06, 0.5, 0.52, 0.94, 0.88], flat: [0.6, 0.6, 0.6, 0.6, 0.6, 0.6],
  };
  const state = { ys: [...PRESETS.over], seed: 1, dragging: null };
  const normals = {}; // by the number of bins; 1,000 draws, as in the library
  const noise = (bins, draws) => (normals[bins] ??= c.normals(1000 * bins, c.random(bins))).subarray(0, draws * bins);
  const settings = () => ({ n: ROWS[$("n").value], bins: Number($("bins").value), scheme: chosen("scheme"), shape: chosen("shape"),
    accuracy: c.through(XS, state.ys) });

  /* -- one sample and the truth ---------------------------------------------------------------- */

  const judge = (rows, bins, scheme, draws = 1000) => {
    const binned = c.makeBins(rows, bins, scheme);
    return { binned, ...c.findInterval(c.findGaps(rows, binned), noise(bins, draws)) };
  };

  let plot = null, last = null, waiting = 0;
  const drawModel = () => {
    const { n, bins, scheme, shape, accuracy } = settings();
    const truth = c.ece(c.makeBins(c.population(shape, accuracy), bins, scheme));
    const sample = judge(c.sampleRows(shape, accuracy, n, c.random(state.seed)), bins, scheme);
    last = { truth, sample };
    plot = drawDiagram($("drawing"), sample.binned, { label: `A drawn model: ECE of this sample ${percent(sample.value)}`, plot: { tall: 0.66 } });
    put(plot.svg, "polyline", { points: XS.map((x, i) => `${plot.x(x)},${plot.y(state.ys[i])}`).join(" "), class: "truth" });
    XS.forEach((x, i) => makeHandle(plot, x, i));
    show({ "true-error": percent(truth), "sample-ece": percent(sample.value),
      "sample-interval": `${percent(sample.low)} to ${percent(sample.high)}`, "n-shown": counted(n), "bins-shown": bins });
    $("draw-says").textContent = sample.low > 0
      ? "The interval leaves out 0: these rows show that the model is miscalibrated."
      : "The interval reaches 0: these rows cannot tell this model from a calibrated one.";
    if (state.dragging !== null) document.querySelector(`[data-point="${state.dragging}"]`).focus({ preventScroll: true });
    clearTimeout(waiting);
    waiting = setTimeout(takeSamples, state.dragging === null ? 0 : 150);
  };

  const makeHandle = ({ svg, x, y }, at, i) => {
    const handle = put(svg, "g", { class: "handle", tabindex: 0, role: "slider", "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 100,
      "aria-valuenow": Math.round(100 * state.ys[i]), "aria-label": `Right at a confidence of ${Math.round(100 * at)} %`,
      "aria-valuetext": `${Math.round(100 * state.ys[i])} %`, "data-point": i });
    put(handle, "circle", { cx: x(at), cy: y(state.ys[i]), r: 20, class: "reach" });
    put(handle, "circle", { cx: x(at), cy: y(state.ys[i]), r: 8 });
    handle.addEventListener("pointerdown", (event) => {
      state.dragging = i;
      $("drawing").setPointerCapture(event.pointerId);
      event.preventDefault();
      handle.focus();
    });
    handle.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: 0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowLeft: -0.01, PageUp: 0.1, PageDown: -0.1, Home: -1, End: 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(i, state.ys[i] + steps[event.key]);
      document.querySelector(`[data-point="${i}"]`).focus();
    });
  };

  const move = (i, value) => {
    state.ys[i] = Math.round(100 * Math.min(1, Math.max(0, value))) / 100;
    for (const one of document.querySelectorAll("[name=preset]")) one.checked = false;
    drawModel();
    if (chosen("heat") === "drawn") drawHeat();
  };
  $("drawing").addEventListener("pointermove", (event) => {
    if (state.dragging === null) return;
    const box = plot.svg.getBoundingClientRect(), place = (event.clientY - box.top) * (plot.svg.viewBox.baseVal.height / box.height);
    move(state.dragging, (plot.floor - place) / plot.height);
  });
  const release = () => { if (state.dragging !== null) { state.dragging = null; drawModel(); } };
  for (const name of ["pointerup", "pointercancel"]) $("drawing").addEventListener(name, release);

  /* -- many samples ---------------------------------------------------------------------------- */

  /* In slices of 40 ms, so that a slider answers at once; another model or sample begins again. */
  const takeSamples = () => {
    const { n, bins, scheme, shape, accuracy } = settings(), { truth } = last, next = c.random(1000 + state.seed);
    const values = [], chance = [];
    let held = 0;
    const slice = () => {
      const begun = performance.now();
      while (values.length < SAMPLES && performance.now() - begun < 40) {
        const one = judge(c.sampleRows(shape, accuracy, n, next), bins, scheme, 250);
        values.push(one.value);
        if (one.low <= truth && truth <= one.high) held++;
        chance.push(c.ece(c.makeBins(c.sampleRows(shape, (x) => x, n, next), bins, scheme)));
      }
      if (values.length < SAMPLES) waiting = setTimeout(slice, 0); else drawSamples(values, chance, held);
    };
    slice();
  };

  const drawSamples = (values, chance, held) => {
    const { truth, sample } = last;
    chance.sort((a, b) => a - b);
    const floor = c.quantile(chance, 0.95), average = c.mean(values), sorted = [...values].sort((a, b) => a - b);
    const most = Math.max(...values, floor, sample.high, truth) * 1.05, columns = 50, tall = new Array(columns + 1).fill(0);
    const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((s) => most / s <= 7) ?? 0.25;
    const view = makePlot($("samples"), { label: "ECE of 100 samples", xs: [0, most], ys: [0, 1], xTitle: "ECE of a sample, %", yTitle: "",
      ticks: { x: Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step), y: [] }, tall: 0.36, most: 200 });
    const { svg, x, floor: ground } = view;
    put(svg, "rect", { x: x(0), width: x(floor) - x(0), y: view.top, height: view.height, class: "chance" });
    put(svg, "line", { x1: x(0), x2: x(most), y1: ground, y2: ground, class: "base" });
    const size = Math.min((x(most) - x(0)) / columns / 2, 5);
    const places = values.map((v) => { const column = Math.floor(v / most * columns); return [column, tall[column]++]; });
    const up = Math.min(2 * size, (view.height - 40) / Math.max(...tall));
    for (const [column, above] of places)
      put(svg, "circle", { cx: x((column + 0.5) / columns * most), cy: ground - size - up * above, r: size - 0.5, class: "sample" });
    put(svg, "line", { x1: x(truth), x2: x(truth), y1: view.top, y2: ground, class: "mark" });
    put(svg, "line", { x1: x(sample.low), x2: x(sample.high), y1: view.top + 12, y2: view.top + 12, class: "held" });
    put(svg, "circle", { cx: x(sample.value), cy: view.top + 12, r: 5.5, class: "one" });
    $("samples").replaceChildren(svg);
    $("samples").dataset.rows = ROWS[$("n").value];
    show({ chance: `${percent(c.mean(chance))}, up to ${percent(floor)}` });
    const off = average - truth;
    $("samples-say").textContent = `The true error is ${percent(truth)}. ECE is ${percent(average)} on average` +
      (Math.abs(off) < 0.0005 ? "" : `, ${Math.abs(100 * off).toFixed(1)} points too ${off > 0 ? "high" : "low"}`) +
      `, and between ${percent(c.quantile(sorted, 0.05))} and ${percent(c.quantile(sorted, 0.95))} in 90 of 100 samples. ` +
      `The interval held the true error in ${held} of 100.`;
  };

  /* -- temperature ----------------------------------------------------------------------------- */

  const network = read("network");
  const bytes = Uint8Array.from(atob(network.logits), (letter) => letter.charCodeAt(0));
  const codes = new Int16Array(bytes.buffer), logits = Float64Array.from(codes, (code) => code / network.scale);
  const atTemperature = (kind, T) => {
    if (kind === "network") {
      const made = c.applyTemperature(logits, network.labels, network.classes.length, T);
      return { ...made, noisy: true };
    }
    const truth = c.through(XS, kind === "drawn" ? state.ys : PRESETS[kind]), all = c.population(chosen("shape"), truth);
    const rows = { scores: all.scores.map((x) => c.scaleScore(x, T)), outcomes: all.outcomes };
    return { rows, nll: c.nllOfScores(rows), accuracy: c.mean(rows.outcomes), noisy: false };
  };
  const bestTemperature = (kind) => (kind === "network" ? network.T : c.fitTemperatureOfScores(atTemperature(kind, 1).rows));

  const drawHeat = () => {
    const kind = chosen("heat"), T = Math.exp(Number($("T").value)), before = atTemperature(kind, 1), after = atTemperature(kind, T);
    const binned = c.makeBins(after.rows, 15), eces = [before, after].map((one) => c.ece(c.makeBins(one.rows, 15)));
    const orders = [before, after].map((one) => c.auroc(one.rows));
    drawDiagram($("heated"), binned, { label: `At temperature ${T.toFixed(2)}: ECE ${percent(eces[1])}`, whiskers: after.noisy, plot: { tall: 0.6 } });
    show({ "T-shown": T.toFixed(2), "T-now": T.toFixed(2), "ece-before": percent(eces[0]), "ece-after": percent(eces[1]),
      "nll-before": before.nll.toFixed(3), "nll-after": after.nll.toFixed(3), "right-after": `${percent(after.accuracy)}, as before`,
      "auroc-before": percent(orders[0]), "auroc-after": percent(orders[1]) });
    $("one-prediction").hidden = kind !== "network";
    if (kind === "network") drawClasses(T);
    const best = bestTemperature(kind), at = atTemperature(kind, best), least = c.ece(c.makeBins(at.rows, 15));
    const found = `The lowest loss is at T = ${best.toFixed(2)}, with an ECE of ${percent(least)}`;
    $("temperature-says").textContent =
      kind === "network" ? `${found} for ${percent(eces[0])} at T = 1. It says too much at nearly all levels, and one number lowers them all.`
        : least < 0.5 * eces[0] ? `${found} for ${percent(eces[0])}: the error has one direction, and one number takes most of it away.`
          : kind === "flat" ? `${found}. The order is missing: the best that is left is to say hardly anything, and AUROC stays at 50 %.`
            : `${found} for ${percent(eces[0])}: what errs in two directions needs more than one number.`;
  };
  /* The probabilities of one row: flatter or steeper, never in another order. */
  let one = 0;
  const drawClasses = (T) => {
    const k = network.classes.length, host = $("classes"), width = Math.min(host.clientWidth || 600, 620), step = 22, left = 96;
    const probs = c.softmax(logits.subarray(one * k, one * k + k), T), top = probs.indexOf(Math.max(...probs));
    const svg = put(document.createDocumentFragment(), "svg", { viewBox: `0 0 ${width} ${step * k}`, role: "img", "aria-label": "Probability of each class" });
    probs.forEach((p, j) => {
      const wide = p * (width - left - 62);
      put(svg, "text", { x: left - 8, y: step * j + 15, class: "axis end" }, network.classes[j]);
      put(svg, "rect", { x: left, y: step * j + 4, width: Math.max(wide, 0.5), height: step - 7, class: j === top ? "one" : "rows" });
      put(svg, "text", { x: left + wide + 6, y: step * j + 15, class: "axis" }, percent(p));
    });
    host.replaceChildren(svg);
    $("classes-say").textContent = `It says ${network.classes[top]}, ${percent(probs[top])}. ` +
      (top === network.labels[one] ? "That is right." : `It is in truth: ${network.classes[network.labels[one]]}.`);
  };
  $("other").addEventListener("click", () => { one = (one + 1) % network.labels.length; drawHeat(); });
  const setTemperature = (T) => { $("T").value = Math.log(T); drawHeat(); };
  $("best").addEventListener("click", () => setTemperature(bestTemperature(chosen("heat"))));
  $("reset").addEventListener("click", () => setTemperature(1));

  /* -- calibrated is not refined --------------------------------------------------------------- */

  const pictures = read("pictures"), SLIDES = ["right", "wrong", "concentration", "accuracy"];
  const drawGroups = () => {
    const [right, wrong, concentration, accuracy] = SLIDES.map((id) => Number($(id).dataset.exact ?? $(id).value));
    const rows = c.twoGroups({ right, wrong, concentration: Math.exp(concentration), accuracy }, 1000), binned = c.makeBins(rows, 15);
    const error = c.ece(binned), order = c.auroc(rows);
    show({ "groups-ece": percent(error), "groups-auroc": percent(order), "right-shown": percent(right), "wrong-shown": percent(wrong),
      "concentration-shown": Math.exp(concentration).toFixed(1), "accuracy-shown": percent(accuracy, 0) });
    drawDiagram($("groups-diagram"), binned, { label: `ECE ${percent(error)}`, whiskers: false });
    const columns = 40, counts = [new Array(columns).fill(0), new Array(columns).fill(0)];
    rows.scores.forEach((x, i) => { counts[rows.outcomes[i]][Math.min(columns - 1, Math.floor(x * columns))]++; });
    const [mostWrong, mostRight] = counts.map((group) => Math.max(...group, 1)); // each group has its own scale: of a good model few rows are wrong
    const { svg, x, y } = makePlot($("groups-density"), { label: `AUROC ${percent(order)}`, xs: [0, 1], ys: [-1, 1], xTitle: "confidence", yTitle: "wrong | right",
      ticks: { y: [] }, low: 54 });
    counts[1].forEach((count, i) => put(svg, "rect", { x: x(i / columns) + 0.5, width: x(1 / columns) - x(0) - 1, y: y(count / mostRight), height: y(0) - y(count / mostRight), class: "of-right" }));
    counts[0].forEach((count, i) => put(svg, "rect", { x: x(i / columns) + 0.5, width: x(1 / columns) - x(0) - 1, y: y(0), height: y(0) - y(count / mostWrong), class: "of-wrong" }));
    put(svg, "line", { x1: x(0), x2: x(1), y1: y(0), y2: y(0), class: "base" });
    $("groups-density").replaceChildren(svg);
    const calibrated = error < 0.1, refined = order > 0.85;
    $("groups-say").textContent = `A right prediction has more confidence than a wrong one in ${Math.round(100 * order)} of 100 pairs; the confidence is off by ` +
      `${(100 * error).toFixed(1)} points on average. ` + (calibrated && !refined ? "Its numbers are nearly true, but they hardly say which predictions to trust."
        : refined && !calibrated ? "Its numbers are not true, but they sort: a repair of the scale is all it needs."
          : calibrated ? "Its numbers are nearly true, and they sort." : "Its numbers are not true, and they do not sort well: no repair of the scale makes up for that.");
  };
  const choosePicture = () => {
    const one = pictures[chosen("picture")];
    for (const id of SLIDES) {
      const value = id === "concentration" ? Math.log(one[id]) : one[id];
      $(id).value = value;
      $(id).dataset.exact = value; // a slider has steps; the picture is exact until it is moved
    }
    drawGroups();
  };
  for (const id of SLIDES) $(id).addEventListener("input", () => {
    delete $(id).dataset.exact;
    for (const one of document.querySelectorAll("[name=picture]")) one.checked = false;
    drawGroups();
  });

  /* -- controls -------------------------------------------------------------------------------- */

  for (const one of document.querySelectorAll("[name=preset]")) one.addEventListener("change", () => {
    state.ys = [...PRESETS[one.value]];
    drawModel();
    if (chosen("heat") === "drawn") drawHeat();
  });
  for (const one of document.querySelectorAll("[name=shape]")) one.addEventListener("change", () => { drawModel(); drawHeat(); });
  for (const one of document.querySelectorAll("[name=scheme]")) one.addEventListener("change", drawModel);
  for (const id of ["n", "bins"]) $(id).addEventListener("input", drawModel);
  $("again").addEventListener("click", () => { state.seed++; drawModel(); });
  for (const one of document.querySelectorAll("[name=heat]")) one.addEventListener("change", () => setTemperature(1));
  $("T").addEventListener("input", drawHeat);
  for (const one of document.querySelectorAll("[name=picture]")) one.addEventListener("change", choosePicture);
  onWidth($("drawing"), drawModel);
  onWidth($("heated"), drawHeat);
  onWidth($("groups-diagram"), drawGroups);
  drawModel();
  drawHeat();
  choosePicture();
})();
