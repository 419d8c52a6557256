// Drag across a diagram: the region in shares of one is sent when the pointer is let go.
let from = null;
const svg = () => element.querySelector("svg[data-brush]");
const at = (event) => {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg().getScreenCTM().inverse());
  return Math.min(100, Math.max(0, point.x));
};
const mark = (a, b) => {
  const brush = element.querySelector(".brush");
  brush.setAttribute("x", Math.min(a, b));
  brush.setAttribute("width", Math.abs(a - b));
};
element.addEventListener("pointerdown", (event) => {
  if (!svg() || !svg().contains(event.target)) return;
  from = at(event);
  mark(from, from);
});
element.addEventListener("pointermove", (event) => { if (from !== null) mark(from, at(event)); });
window.addEventListener("pointerup", (event) => {
  if (from === null || !svg()) return;
  const to = at(event), start = from;
  from = null;
  if (Math.abs(to - start) < 0.5) return;
  trigger("select", { low: Math.min(start, to) / 100, high: Math.max(start, to) / 100 });
});
