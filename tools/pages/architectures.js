(() => {
  const table = read("table"), c = calibrant, columns = table.columns, all = table.arch.map((_, i) => i), front = new Set(table.front);
  const state = { box: null, chosen: null, plot: null, start: null };
  const NODES = [0, 1, 2, 3];

  const rowsOfSpace = () => all.filter((i) => table.data[i] === chosen("data") && table.space[i] === chosen("space"));
  const shownRows = () => rowsOfSpace().filter((i) => $("constant").checked || !table.constant[i]);
  const place = (i) => [columns.accuracy[i], columns[chosen("error")][i]];
  const inBox = (i) => {
    if (!state.box) return true;
    const [x, y] = place(i), { x0, x1, y0, y1 } = state.box;
    return x0 <= x && x <= x1 && y0 <= y && y <= y1;
  };
  const short = (v) => (v === null || v === undefined ? "none" : Math.abs(v) >= 1000 ? counted(Math.round(v)) : `${Number(v.toPrecision(4))}`);

  /* -- the scatter ----------------------------------------------------------------------------- */

  const ticksOf = (low, high) => {
    const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((s) => (high - low) / s <= 7) ?? 0.25, first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
  };
  const colourOf = (share) => {
    const at = Math.min(3.9999, Math.max(0, share * 4)), i = Math.floor(at);
    return `color-mix(in srgb, var(--r${i}) ${(100 * (1 - at + i)).toFixed(1)}%, var(--r${i + 1}))`;
  };
  const drawScatter = () => {
    const constant = rowsOfSpace().filter((i) => table.constant[i]);
    $("constant-line").hidden = !constant.length;
    $("constant-says").textContent = `Show the ${constant.length} constant networks, which ignore the image: hollow dots at an accuracy of 10 %. Their small ECE means nothing.`;
    const rows = shownRows(), xs = rows.map((i) => place(i)[0]), ys = rows.map((i) => place(i)[1]), column = columns[$("colour").value];
    const widen = (values) => { const low = Math.min(...values), high = Math.max(...values), more = 0.04 * (high - low); return [Math.max(0, low - more), high + more]; };
    const wide = widen(xs), tall = [0, Math.max(...ys) * 1.05];
    const plot = makePlot($("scatter"), { label: `Accuracy against ECE of ${rows.length} networks`, xs: wide, ys: tall, xTitle: "accuracy, %", yTitle: "ECE, 15 bins, %",
      ticks: { x: ticksOf(...wide), y: ticksOf(...tall) }, tall: 0.74 });
    const { svg, x, y } = plot;
    const known = rows.filter((i) => !table.constant[i]).map((i) => column[i]).filter((v) => v !== null).sort((a, b) => a - b);
    const low = known.length ? c.quantile(known, 0.02) : 0, high = known.length ? c.quantile(known, 0.98) : 0;
    show({ "ramp-low": known.length ? short(low) : "no values here", "ramp-high": known.length ? short(high) : "" });
    if (chosen("error") === "pre_ECE_15") {
      const line = rows.filter((i) => front.has(i)).sort((i, j) => xs[rows.indexOf(i)] - xs[rows.indexOf(j)]);
      put(svg, "polyline", { points: line.map((i) => `${x(place(i)[0])},${y(place(i)[1])}`).join(" "), class: "front" });
    }
    for (const i of rows) {
      const [px, py] = place(i), value = column[i];
      const dot = put(svg, "circle", { cx: x(px).toFixed(2), cy: y(py).toFixed(2), r: 5, "data-row": i,
        class: `network${table.constant[i] ? " constant" : ""}${inBox(i) ? "" : " out"}${i === state.chosen ? " chosen" : ""}` });
      dot.style.fill = value === null ? "var(--grid)" : colourOf(high > low ? (value - low) / (high - low) : 0.5);
    }
    const last = svg.querySelector(".chosen");
    if (last) svg.append(last);
    if (state.box) drawBox(plot, state.box);
    $("scatter").replaceChildren(svg);
    state.plot = { ...plot, wide, tall };
  };
  const drawBox = ({ svg, x, y }, { x0, x1, y0, y1 }) => {
    svg.querySelector(".brush")?.remove();
    put(svg, "rect", { x: x(x0), width: Math.max(x(x1) - x(x0), 1), y: y(y1), height: Math.max(y(y0) - y(y1), 1), class: "brush" });
  };

  /* Where a pointer is, in pixels of the drawing. */
  const pixel = (event) => {
    const { svg } = state.plot, box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    return [(event.clientX - box.left) * view.width / box.width, (event.clientY - box.top) * view.height / box.height];
  };
  const valueAt = ([px, py]) => {
    const { x, y, wide, tall } = state.plot;
    const clamp = (share) => Math.min(1, Math.max(0, share));
    return [wide[0] + clamp((px - x(wide[0])) / (x(wide[1]) - x(wide[0]))) * (wide[1] - wide[0]),
      tall[0] + clamp((py - y(tall[0])) / (y(tall[1]) - y(tall[0]))) * (tall[1] - tall[0])];
  };
  const boxOf = (a, b) => {
    const [[ax, ay], [bx, by]] = [valueAt(a), valueAt(b)];
    return { x0: Math.min(ax, bx), x1: Math.max(ax, bx), y0: Math.min(ay, by), y1: Math.max(ay, by) };
  };
  const host = $("scatter");
  host.addEventListener("pointerdown", (event) => { if (event.button === 0) { state.start = pixel(event); host.setPointerCapture(event.pointerId); } });
  host.addEventListener("pointermove", (event) => {
    if (state.start && far(state.start, pixel(event))) drawBox(state.plot, boxOf(state.start, pixel(event)));
  });
  const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) > 6;
  host.addEventListener("pointerup", (event) => {
    if (!state.start) return;
    const start = state.start, end = pixel(event);
    state.start = null;
    if (far(start, end)) setBox(boxOf(start, end)); else chooseNear(end);
  });
  host.addEventListener("pointercancel", () => { state.start = null; drawScatter(); });
  const chooseNear = ([px, py]) => {
    const { x, y } = state.plot, away = (i) => Math.hypot(x(place(i)[0]) - px, y(place(i)[1]) - py);
    const nearest = shownRows().reduce((best, i) => (away(i) < away(best) ? i : best));
    if (away(nearest) < 16) choose(nearest);
  };
  host.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const order = shownRows().filter(inBox).sort((i, j) => place(i)[step[0]] - place(j)[step[0]] || i - j);
    if (!order.length) return;
    const at = order.indexOf(state.chosen);
    choose(order[at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + step[1]))]);
  });

  /* -- one network ----------------------------------------------------------------------------- */

  const operationsOf = (arch) => arch.match(/\w+(?=~)/g);
  /* The arcs of a cell, as nas/pictures.py draws them. */
  const arcsOf = (arch) => operationsOf(arch).map((operation, i) => {
    const [source, to] = table.edges[i], start = 60 + 200 * source, end = 60 + 200 * to, rise = { 200: 0, 400: 110, 600: 220 }[end - start];
    const middle = Math.floor((start + end) / 2);
    return { operation, path: `M${start + 13} 238 Q${middle} ${232 - 2 * rise} ${end - 13} 238`, x: middle, y: 232 - rise - 8 };
  }).filter((arc) => arc.operation !== "none");
  const drawCell = (arch) => {
    const size = $("cell").clientWidth < 520 ? 23 : 15;
    const svg = put(document.createDocumentFragment(), "svg", { viewBox: "0 -22 720 312", role: "img", "aria-label": `Cell ${arch}`, "font-size": size });
    const tip = put(put(svg, "defs"), "marker", { id: "tip", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
    put(tip, "path", { d: "M0 0 8 4 0 8z", class: "tip" });
    for (const arc of arcsOf(arch)) {
      put(svg, "path", { d: arc.path, class: `edge ${arc.operation}`, "marker-end": "url(#tip)" });
      put(svg, "text", { x: arc.x, y: arc.y, class: `operation middle ${arc.operation}` }, arc.operation);
    }
    for (const node of NODES) {
      put(svg, "circle", { cx: 60 + 200 * node, cy: 250, r: 18, class: "node" });
      put(svg, "text", { x: 60 + 200 * node, y: 250 + size / 3, class: "middle" }, node);
    }
    return svg;
  };
  const drawWidths = (arch) => {
    const [c1, ...rest] = arch.split(":").map(Number), size = $("cell").clientWidth < 520 ? 23 : 15;
    const layers = [["stem", c1], ["cell", c1], ...["halve", "cell", "halve", "cell"].map((kind, i) => [kind, rest[i]])];
    const svg = put(document.createDocumentFragment(), "svg", { viewBox: "0 0 720 250", role: "img", "aria-label": `Widths ${arch}`, "font-size": size });
    layers.forEach(([kind, width], i) => {
      const tall = 160 * width / 64, x = 20 + 116 * i;
      put(svg, "rect", { x, y: 190 - tall, width: 90, height: tall, class: "layer" });
      put(svg, "text", { x: x + 45, y: 182 - tall, class: "middle" }, width);
      put(svg, "text", { x: x + 45, y: 216, class: "middle" }, kind);
    });
    return svg;
  };
  const choose = (i) => {
    state.chosen = i;
    const of = (name) => columns[name][i];
    $("network-name").textContent = `Network ${table.config[i]}${table.constant[i] ? ", constant: it ignores the image" : ""}`;
    const numbers = [["accuracy", percent(of("accuracy"), 2)], ["ECE as trained", percent(of("pre_ECE_15"), 2)], ["ECE after temperature scaling", percent(of("post_ECE_15"), 2)],
      ["temperature T", short(of("T"))], ["parameters", counted(of("params"))], ["FLOPs, million", short(of("flops"))]];
    const colour = $("colour").value;
    if (!["accuracy", "T", "params", "flops", "pre_ECE_15", "post_ECE_15"].includes(colour)) numbers.push([colour, short(of(colour))]);
    $("network-numbers").replaceChildren(...numbers.map(([name, value]) => {
      const pair = makeElement("div");
      pair.append(makeElement("dt", {}, name), makeElement("dd", {}, value));
      return pair;
    }));
    $("cell").replaceChildren((table.space[i] === "topology" ? drawCell : drawWidths)(table.arch[i]));
    $("network-command").textContent = `calibrant nas show ${table.config[i]}${table.space[i] === "size" ? " --space size" : ""}`;
    drawScatter();
  };

  /* -- the networks in the box ----------------------------------------------------------------- */

  const FIELDS = ["x0", "x1", "y0", "y1"];
  const setBox = (box) => {
    state.box = box;
    for (const id of FIELDS) $(id).value = box ? (100 * box[id]).toFixed(2) : "";
    if (box) for (const id of FIELDS) box[id] = Number($(id).value) / 100; // what is written is what counts
    drawScatter();
    describeBox();
  };
  for (const id of FIELDS) $(id).addEventListener("change", () => {
    const typed = FIELDS.map((field) => ($(field).value === "" ? null : Number($(field).value) / 100));
    if (typed.every((v) => v === null)) { setBox(null); return; }
    const [x0, x1, y0, y1] = typed;
    setBox({ x0: x0 ?? 0, x1: x1 ?? 1, y0: y0 ?? 0, y1: y1 ?? 1 });
  });
  $("clear").addEventListener("click", () => setBox(null));

  const describeBox = () => {
    const rows = shownRows(), inside = rows.filter(inBox), average = (some, of) => c.mean(some.map(of));
    const column = columns[chosen("error")];
    $("box-says").textContent = !inside.length ? "No network in the box." :
      `${state.box ? `${inside.length} of ${rows.length} networks in the box` : `No box: all ${rows.length} networks`}: accuracy ${percent(average(inside, (i) => columns.accuracy[i]))}, ` +
      `ECE ${percent(average(inside, (i) => column[i]))}, T ${average(inside, (i) => columns.T[i]).toFixed(2)} on average` +
      (state.box && inside.length < rows.length ? `; all: accuracy ${percent(average(rows, (i) => columns.accuracy[i]))}, ECE ${percent(average(rows, (i) => column[i]))}.` : ".");
    drawShares(inside);
    const best = [...inside].sort((i, j) => columns.accuracy[j] - columns.accuracy[i]).slice(0, 8);
    const head = rowOf("th", ["network", "accuracy", "ECE", "T"]), body = best.map((i) => {
      const row = rowOf("td", ["", percent(columns.accuracy[i], 2), percent(column[i], 2), columns.T[i].toFixed(2)]);
      const button = makeElement("button", { type: "button" }, table.config[i]);
      button.addEventListener("click", () => choose(i));
      row.firstChild.append(button);
      return row;
    });
    fill($("inside"), `The most accurate ${best.length} of them`, head, body);
  };
  const rowOf = (tag, texts) => {
    const row = makeElement("tr");
    texts.forEach((text, i) => row.append(makeElement(tag, i ? { class: "n" } : {}, text)));
    return row;
  };
  const fill = (place_, words, head, body) => {
    const [caption, top, rest] = ["caption", "thead", "tbody"].map((tag) => makeElement(tag));
    caption.textContent = words;
    top.append(head);
    rest.append(...body);
    place_.replaceChildren(caption, top, rest);
  };
  /* How often each operation stands on each edge; or the mean width of each layer. */
  const drawShares = (inside) => {
    if (chosen("space") === "size") {
      const widths = inside.map((i) => table.arch[i].split(":").map(Number));
      const means = [0, 1, 2, 3, 4].map((layer) => (inside.length ? c.mean(widths.map((w) => w[layer])) : 0));
      fill($("shares"), "Mean width of each layer, of 8 to 64", rowOf("th", ["layer", "width"]), means.map((mean, layer) => {
        const row = rowOf("td", [`${layer + 1}`, mean.toFixed(1)]);
        row.lastChild.style.setProperty("--share", mean / 64);
        return row;
      }));
      return;
    }
    const cells = inside.map((i) => operationsOf(table.arch[i]));
    const body = table.operations.map((operation) => {
      const shares = table.edges.map((_, e) => (cells.length ? cells.filter((cell) => cell[e] === operation).length / cells.length : 0));
      const row = rowOf("td", ["", ...shares.map((share) => `${Math.round(100 * share)}`)]);
      row.firstChild.replaceWith(makeElement("th", { scope: "row" }, operation));
      shares.forEach((share, e) => row.children[e + 1].style.setProperty("--share", share));
      return row;
    });
    fill($("shares"), "Operations on the six edges of the cell, % of the networks", rowOf("th", ["", ...table.edges.map(([a, b]) => `${a}\u2192${b}`)]), body);
  };

  /* -- controls -------------------------------------------------------------------------------- */

  const best = () => shownRows().reduce((one, i) => (columns.accuracy[i] > columns.accuracy[one] ? i : one));
  $("constant").addEventListener("change", () => {
    setBox(state.box);
    choose(shownRows().includes(state.chosen) ? state.chosen : best());
  });
  for (const one of document.querySelectorAll("[name=data], [name=space]")) one.addEventListener("change", () => {
    const same = shownRows().find((i) => state.chosen !== null && table.arch[i] === table.arch[state.chosen]);
    setBox(null);
    choose(same ?? best());
  });
  for (const one of document.querySelectorAll("[name=error]")) one.addEventListener("change", () => { drawScatter(); describeBox(); });
  $("colour").addEventListener("change", () => choose(state.chosen));
  onWidth(host, () => choose(state.chosen));
  choose(best());
  describeBox();
})();
