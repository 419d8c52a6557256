"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const VALUE = 0, LOW = 1, HIGH = 2, FIRST = 3, LAST = 4, GROUP = 5;
  const USED = 1, ROWS = 0;
  const shown = (x, share, digits) => (x === null ? "undefined" : share ? `${(100 * x).toFixed(digits ?? 1)}\u00a0%` : x.toFixed(3));
  const ends = (low, high, share) => (low === null ? "" : share ? `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}` : `${low.toFixed(3)} to ${high.toFixed(3)}`);
  const letter = (group) => {
    let text = "";
    for (let left = group; left > 0; left = Math.floor((left - 1) / 26)) text = String.fromCharCode(65 + (left - 1) % 26) + text;
    return text;
  };
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const drawn = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  };
  const picked = (name, usual) => document.querySelector(`input[name=${name}]:checked`)?.value ?? usual;

  const measureOf = (id) => data.measures.find((m) => m.id === id);
  let sort = "ece", descending = false;
  const now = () => {
    const board = data.boards[Number(picked("confidence", "0"))], state = picked("state", "before");
    const least = Number($("least").value), text = $("find").value.trim().toLowerCase();
    const by = measureOf(sort), sign = by.down !== descending ? 1 : -1;
    const models = board.models.map((model, number) => ({ model, number }))
      .filter(({ model }) => model.scores[state][sort][GROUP] && model.counts[USED] >= least * model.counts[ROWS] && model.name.toLowerCase().includes(text))
      .sort((a, b) => sign * (a.model.scores[state][sort][VALUE] - b.model.scores[state][sort][VALUE]));
    return { board, state, models };
  };
  /* Models that are neither worse nor better beyond noise, by the measure that sorts. */
  const alike = (board, state, number) => {
    const worse = board.worse[state][sort];
    return board.models.map((model, other) => other !== number && model.scores[state][sort][GROUP] > 0 && worse[number][other] === "0" && worse[other][number] === "0");
  };
  const mark = (number) => {
    const { board, state } = now();
    const same = number === null ? [] : alike(board, state, number);
    for (const one of document.querySelectorAll("[data-number]")) {
      one.classList.toggle("self", Number(one.dataset.number) === number);
      one.classList.toggle("alike", Boolean(same[Number(one.dataset.number)]));
    }
  };

  const head = (state) => {
    const row = $("models").tHead.rows[0];
    row.replaceChildren(element("th", "model"));
    for (const m of data.measures) {
      const cell = element("th", undefined, "n"), button = element("button", m.title);
      cell.scope = "col";
      cell.dataset.measure = m.id;
      if (m.id === sort) cell.ariaSort = m.down !== descending ? "ascending" : "descending";
      button.type = "button";
      button.addEventListener("click", () => { descending = m.id === sort ? !descending : false; sort = m.id; $("sort").value = sort; show(); });
      cell.append(button);
      row.append(cell);
    }
    row.append(element("th", state === "before" ? "ECE after repair" : "change of ECE", "n"), element("th", "counted", "n"));
  };
  const show = () => {
    const { board, state, models } = now();
    head(state);
    const body = element("tbody");
    const most = Object.fromEntries(data.measures.map((m) => [m.id, Math.max(...models.map(({ model }) => model.scores[state][m.id][HIGH] ?? 0), 1e-9)]));
    for (const { model, number } of models) {
      const row = body.insertRow(), name = element("th"), button = element("button", model.name), place = model.scores[state][sort];
      const share = model.counts[USED] / model.counts[ROWS];
      row.dataset.number = number;
      row.classList.toggle("few", share < 0.9);
      name.scope = "row";
      button.type = "button";
      button.addEventListener("click", () => open(number));
      name.append(button, element("span", `rank ${place[FIRST]}${place[LAST] > place[FIRST] ? ` to ${place[LAST]}` : ""}`, "ends"));
      row.append(name);
      for (const m of data.measures) {
        const s = model.scores[state][m.id], cell = row.insertCell();
        cell.className = "n";
        cell.dataset.label = m.title;
        const number = element("span", `${shown(s[VALUE], m.share)} `, "one-line");
        number.append(element("i", letter(s[GROUP]), "letter"));
        cell.append(number, element("span", ends(s[LOW], s[HIGH], m.share), "ends"));
        const box = element("span", undefined, "whisker-box"), line = element("i");
        if (s[VALUE] !== null) {
          line.style.left = `${100 * s[LOW] / most[m.id]}%`;
          line.style.width = `${100 * (s[HIGH] - s[LOW]) / most[m.id]}%`;
          box.append(line);
        }
        box.ariaHidden = "true";
        cell.append(box);
      }
      const repaired = row.insertCell(), counted = row.insertCell();
      repaired.className = "n";
      repaired.dataset.label = state === "before" ? "ECE after repair" : "change of ECE";
      if (state === "before") repaired.textContent = shown(model.scores.after.ece[VALUE], true);
      else if (model.change) {
        const signed = (x) => `${x < 0 ? "\u2212" : "+"}${Math.abs(100 * x).toFixed(1)}`;
        repaired.append(signed(model.change[VALUE]), element("span", `${signed(model.change[LOW])} to ${signed(model.change[HIGH])}`, "ends"));
      }
      counted.className = "n counted";
      counted.dataset.label = "counted";
      counted.textContent = shown(share, true);
      row.addEventListener("pointerenter", () => mark(number));
      row.addEventListener("pointerleave", () => mark(null));
    }
    $("models").tBodies[0].replaceWith(body);
    $("shown").textContent = `${models.length} of ${board.models.length} models, by ${measureOf(sort).title}; point at one to see which cannot be told apart from it, click it for its diagram.`;
    scatter(board, state, models);
  };

  const scatter = (board, state, models) => {
    const place = $("map").firstElementChild, width = Math.min(place.clientWidth || 700, 736), height = Math.max(230, width * 0.45);
    const left = 46, bottom = 40, top = 10, right = 12;
    const known = models.filter(({ model }) => model.scores[state].ece[VALUE] !== null && model.scores[state].auroc_correct[VALUE] !== null);
    const xs = known.map(({ model }) => model.scores[state].ece[VALUE]), ys = known.map(({ model }) => model.scores[state].auroc_correct[VALUE]);
    place.replaceChildren();
    if (!known.length) return;
    const step = (span) => [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((one) => span / one <= 7) ?? 0.5;
    const xStep = step(Math.max(...xs)), xMax = Math.max(xStep, Math.ceil(Math.max(...xs) / xStep) * xStep);
    const yStep = step(Math.max(...ys) - Math.min(...ys) + 0.02);
    const yMin = Math.floor(Math.min(...ys) / yStep) * yStep, yMax = Math.ceil((Math.max(...ys) + 1e-9) / yStep) * yStep;
    const x = (v) => left + (width - left - right) * v / xMax, y = (v) => height - bottom - (height - bottom - top) * (v - yMin) / (yMax - yMin || 1);
    const svg = drawn(place, "svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "ECE against AUROC of correctness of every model shown; the table has the numbers" });
    for (let v = 0; v <= xMax + 1e-9; v += xStep) {
      drawn(svg, "line", { x1: x(v), x2: x(v), y1: top, y2: height - bottom, class: "grid" });
      drawn(svg, "text", { x: x(v), y: height - bottom + 15, class: "axis middle" }, `${Number((100 * v).toFixed(2))}`);
    }
    for (let v = yMin; v <= yMax + 1e-9; v += yStep) {
      drawn(svg, "line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "grid" });
      drawn(svg, "text", { x: left - 6, y: y(v) + 4, class: "axis end" }, v.toFixed(yStep < 0.01 ? 3 : 2));
    }
    drawn(svg, "text", { x: (left + width - right) / 2, y: height - 6, class: "axis middle" }, "ECE, %");
    drawn(svg, "text", { transform: `translate(11 ${(height - bottom + top) / 2}) rotate(-90)`, class: "axis middle" }, "AUROC of correctness");
    const dots = known.map(({ model, number }) => {
      const dot = drawn(svg, "circle", { cx: x(model.scores[state].ece[VALUE]), cy: y(model.scores[state].auroc_correct[VALUE]), r: 6 });
      dot.dataset.number = number;
      return { dot, model, number };
    });
    const name = drawn(svg, "text", { class: "name" });
    for (const { dot, model, number } of dots) {
      drawn(dot, "title", {}, model.name);
      dot.addEventListener("pointerenter", () => {
        const cx = Number(dot.getAttribute("cx"));
        name.textContent = model.name;
        name.setAttribute("x", cx);
        name.setAttribute("y", Number(dot.getAttribute("cy")) - 11);
        name.setAttribute("text-anchor", cx > 0.7 * width ? "end" : cx < 0.3 * width ? "start" : "middle");
        mark(number);
      });
      dot.addEventListener("pointerleave", () => { name.textContent = ""; mark(null); });
      dot.addEventListener("click", () => open(number));
    }
  };

  const diagram = (bins, title) => {
    const figure = element("figure"), side = 300, left = 40, bottom = 36, top = 6, size = side - left - 8;
    const x = (v) => left + size * v, y = (v) => top + size * (1 - v);
    const svg = drawn(figure, "svg", { viewBox: `0 0 ${side} ${size + top + bottom}`, role: "img", "aria-label": title });
    for (const v of [0, 0.25, 0.5, 0.75, 1]) {
      drawn(svg, "line", { x1: x(0), x2: x(1), y1: y(v), y2: y(v), class: "grid" });
      drawn(svg, "text", { x: left - 5, y: y(v) + 4, class: "axis end" }, `${100 * v}`);
      drawn(svg, "text", { x: x(v), y: y(0) + 15, class: "axis middle" }, `${100 * v}`);
    }
    const most = Math.max(...bins.map((b) => b[2]), 1);
    for (const [low, high, rows, says, right] of bins) {
      const bar = drawn(svg, "rect", { x: x(low) + 1, width: Math.max(size * (high - low) - 2, 1), y: y(Math.max(says, right)), height: Math.max(size * Math.abs(says - right), 0.5),
        class: says > right ? "over" : "under", opacity: 0.3 + 0.6 * Math.sqrt(rows / most) });
      drawn(bar, "title", {}, `says ${shown(says, true)}, is right ${shown(right, true)}: ${rows.toLocaleString("en")} answers`);
      drawn(svg, "line", { x1: x(low) + 1, x2: x(high) - 1, y1: y(right), y2: y(right), class: "right" });
    }
    drawn(svg, "line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "calibrated" });
    drawn(svg, "text", { x: x(0.5), y: y(0) + 31, class: "axis middle" }, "says, %");
    drawn(svg, "text", { transform: `translate(11 ${y(0.5)}) rotate(-90)`, class: "axis middle" }, "is right, %");
    figure.prepend(element("b", title));
    return figure;
  };
  const open = (number) => {
    const { board, state } = now(), model = board.models[number], s = model.scores;
    $("one-name").textContent = model.name;
    $("one-says").textContent = `Says ${shown(model.says, true)} on average, is right ${shown(s.before.accuracy[VALUE], true)}. ` +
      data.measures.map((m) => `${m.title} ${shown(s.before[m.id][VALUE], m.share)} (${ends(s.before[m.id][LOW], s.before[m.id][HIGH], m.share)})`).join(", ") + ".";
    document.querySelector("#one .pair").replaceChildren(
      diagram(model.bins.before, `As given: ECE ${shown(s.before.ece[VALUE], true)}`),
      ...(model.bins.after.length ? [diagram(model.bins.after, `After the repair, judged half: ECE ${shown(s.after.ece[VALUE], true)}`)] : []));
    const same = board.models.filter((_, other) => alike(board, state, number)[other]).map((one) => one.name);
    $("one-alike").textContent = `By ${measureOf(sort).title}, ${same.length ? `${same.length} cannot be told apart from it: ${same.join(", ")}.` : "every other model can be told apart from it."}`;
    const table = $("one-groups"), names = Object.keys(model.groups);
    const line = element("tr");
    line.append(element("th", data.group ?? "group"), ...data.groupColumns.map((column) => element("th", column.title, "n")));
    table.tHead.replaceChildren(...(names.length ? [line] : []));
    const body = element("tbody");
    for (const name of names.sort((a, b) => model.groups[b][0] - model.groups[a][0])) {
      const row = body.insertRow();
      row.append(element("th", name), ...model.groups[name].map((v, i) => element("td", shown(v, data.groupColumns[i].share), "n")));
    }
    table.tBodies[0].replaceWith(body);
    const [rows, used, missing, above, below, distinct] = model.counts.map((n) => n.toLocaleString("en"));
    $("one-counts").textContent = `${rows} answers, ${used} with a confidence from 0 to 1 (${distinct} different values); ${missing} without one, ${above} above 1, ${below} below 0.`;
    $("one").showModal();
  };

  for (const m of data.measures) $("sort").append(new Option(m.title, m.id));
  $("sort").addEventListener("change", () => { sort = $("sort").value; descending = false; show(); });
  for (const one of document.querySelectorAll("#controls input, #least")) one.addEventListener("input", show);
  $("close").addEventListener("click", () => $("one").close());
  $("one").addEventListener("click", (event) => { if (event.target === $("one")) $("one").close(); });
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { $("theme").textContent = dark() ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; label(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  document.documentElement.classList.add("live");
  label();
  show();
  let width = 0;
  new ResizeObserver(() => { const wide = $("map").clientWidth; if (wide !== width) { width = wide; const { board, state, models } = now(); scatter(board, state, models); } }).observe($("map"));
})();
