/* What the pages share: elements, number format, the reliability diagram, and the switch between light and dark. */
const $ = (id) => document.getElementById(id);
const percent = (x, digits = 1) => (Number.isFinite(x) ? `${(100 * x).toFixed(digits)}\u00a0%` : "undefined");
const points = (x) => `${x < 0 ? "\u2212" : "+"}${Math.abs(100 * x).toFixed(1)} points`;
const counted = (n) => n.toLocaleString("en");
const read = (id) => JSON.parse($(id).textContent);

const put = (parent, tag, attributes = {}, text) => {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  parent.appendChild(one);
  return one;
};

const makeElement = (tag, attributes = {}, text) => {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  return one;
};

const show = (values) => { for (const [id, text] of Object.entries(values)) $(id).textContent = text; };
const chosen = (name) => document.querySelector(`[name=${name}]:checked`).value;

/* An empty plot: axes with ticks, and functions from values to places. */
const makePlot = (host, { label, xs, ys, xTitle, yTitle, ticks, tall = 0.72, most = 420, low = 0 }) => {
  const width = Math.max(270, Math.min(host.clientWidth || 600, 720)), left = 44, right = 12, top = 8;
  const height = Math.round(Math.min(width * tall, most)), floor = top + height;
  const svg = put(document.createDocumentFragment(), "svg", { viewBox: `0 0 ${width} ${floor + low + 40}`, role: "img", "aria-label": label });
  const x = (v) => left + (v - xs[0]) / (xs[1] - xs[0]) * (width - left - right);
  const y = (v) => floor - (v - ys[0]) / (ys[1] - ys[0]) * height;
  for (const v of ticks?.y ?? [0, 0.25, 0.5, 0.75, 1]) {
    put(svg, "line", { x1: x(xs[0]), x2: x(xs[1]), y1: y(v), y2: y(v), class: "grid" });
    put(svg, "text", { x: left - 7, y: y(v) + 4, class: "axis end" }, `${Number((100 * v).toPrecision(3))}`);
  }
  for (const v of ticks?.x ?? [0, 0.25, 0.5, 0.75, 1])
    put(svg, "text", { x: x(v), y: floor + low + 16, class: `axis ${v === xs[1] ? "end" : "middle"}` }, `${Number((100 * v).toPrecision(3))}${v === xs[1] ? "\u00a0%" : ""}`);
  put(svg, "text", { x: x((xs[0] + xs[1]) / 2), y: floor + low + 34, class: "axis middle" }, xTitle);
  put(svg, "text", { transform: `translate(11 ${y((ys[0] + ys[1]) / 2)}) rotate(-90)`, class: "axis middle" }, yTitle);
  return { svg, x, y, top, floor, width, height, base: floor + low };
};

/* The reliability diagram: gaps as bars, accuracies as lines, rows below. */
const drawDiagram = (host, binned, options = {}) => {
  const { from = 0, label = "Reliability diagram", whiskers = true, counts = true, words = null, side = true } = options;
  const tail = counts ? 54 : 0, wide = [from, 1], ticks = from ? [0.5, 0.6, 0.7, 0.8, 0.9, 1] : [0, 0.25, 0.5, 0.75, 1];
  const plot = makePlot(host, { label, xs: wide, ys: [0, 1], xTitle: words?.x ?? "what it says (confidence)",
    yTitle: words?.y ?? "how often it is right, %", ticks: { x: ticks }, low: tail, ...options.plot });
  const { svg, x, y, base } = plot;
  const filled = binned.bins.filter((b) => b.count > 0), most = Math.max(...filled.map((b) => b.count), 1);
  if (side) {
    put(svg, "text", { x: x(from + 0.03 * (1 - from)), y: y(0.93), class: "side" }, "underconfident");
    put(svg, "text", { x: x(1 - 0.03 * (1 - from)), y: y(0.04), class: "side end" }, "overconfident");
  }
  for (const b of filled) {
    const x1 = x(Math.max(b.low, from)), across = Math.max(x(b.high) - x1, 2), inset = across < 5 ? 0 : 0.75;
    put(svg, "rect", { x: x1 + inset, width: across - 2 * inset, y: Math.min(y(b.confidence), y(b.accuracy)),
      height: Math.abs(y(b.confidence) - y(b.accuracy)), class: b.confidence > b.accuracy ? "over" : "under",
      opacity: (0.3 + 0.6 * Math.sqrt(b.count / most)).toFixed(3) });
    put(svg, "line", { x1: x1 + inset, x2: x1 + across - inset, y1: y(b.accuracy), y2: y(b.accuracy), class: "right" });
    if (whiskers && filled.length <= 60) {
      const [down, up] = calibrant.wilson(b.accuracy, b.count);
      put(svg, "line", { x1: x1 + across / 2, x2: x1 + across / 2, y1: y(down), y2: y(up), class: "whisker" });
    }
    if (counts) {
      const bar = (tail - 12) * b.count / most;
      put(svg, "rect", { x: x1 + inset, width: across - 2 * inset, y: base - bar, height: bar, class: "rows" });
    }
  }
  put(svg, "line", { x1: x(from), y1: y(from), x2: x(1), y2: y(1), class: "calibrated" });
  if (counts) {
    put(svg, "line", { x1: x(from), x2: x(1), y1: base, y2: base, class: "base" });
    put(svg, "text", { x: 37, y: base - 1, class: "axis end" }, "rows");
  }
  host.replaceChildren(svg);
  return plot;
};

/* Draw again when the place for a picture gets another width. */
const onWidth = (host, draw) => {
  let width = host.clientWidth;
  new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; draw(); } }).observe(host);
};

(() => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const label = () => { $("theme").textContent = isDark() ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  dark.addEventListener("change", label);
  root.classList.add("live");
  label();
})();
