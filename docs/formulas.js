// Draw the formulas of a page with the local copy of KaTeX. Without it they stay readable as TeX.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof renderMathInElement === "undefined") return;
  const delimiters = [
    { left: "\\[", right: "\\]", display: true },
    { left: "\\(", right: "\\)", display: false },
  ];
  for (const element of document.querySelectorAll(".arithmatex")) renderMathInElement(element, { delimiters });
});
