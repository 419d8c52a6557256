(() => {
  const c = calibrant, questions = read("questions"), network = read("network"), KEY = "calibrant-quiz", TEN = 10, BINS = 10;
  const kept = (() => { // answers of this browser; a page that may not keep anything still works
    const clean = (list) => (Array.isArray(list) ? list : []).filter((a) => Number.isInteger(a?.question) && questions[a.question]
      && [0.5, 0.6, 0.7, 0.8, 0.9, 1].includes(a.said) && typeof a.right === "boolean");
    try { return clean(JSON.parse(localStorage.getItem(KEY))); } catch { return []; }
  })();
  const keep = () => { try { localStorage.setItem(KEY, JSON.stringify(kept)); } catch { /* not allowed here */ } };
  let game = [], given = [];

  const paint = (canvas, image) => {
    const pixels = Uint8Array.from(atob(image), (letter) => letter.charCodeAt(0)), context = canvas.getContext("2d");
    const drawn = context.createImageData(28, 28);
    pixels.forEach((grey, i) => drawn.data.set([grey, grey, grey, 255], 4 * i));
    context.putImageData(drawn, 0, 0);
  };

  /* Two questions of each band of the network's confidence, those not asked before first. */
  const deal = () => {
    const next = c.random(Date.now() % 2147483647), asked = new Set(kept.map((a) => a.question)), drawn = [];
    for (const band of new Set(questions.map((q) => q.band))) {
      const own = questions.map((q, i) => ({ i, band: q.band, order: next() + (asked.has(i) ? 1 : 0) })).filter((q) => q.band === band);
      drawn.push(...own.sort((a, b) => a.order - b.order).slice(0, 2));
    }
    return drawn.map((q) => ({ i: q.i, order: next() })).sort((a, b) => a.order - b.order).map((q) => q.i);
  };

  const ask = () => {
    const q = questions[game[given.length]];
    $("count").textContent = `Picture ${given.length + 1} of ${TEN}`;
    paint($("image"), q.image);
    q.options.forEach((name, i) => { $(`option-${i}`).textContent = name; });
    $("question").reset();
    $("next").disabled = true;
    $("next").textContent = given.length === TEN - 1 ? "See the result" : "Next";
  };
  const start = () => {
    game = deal();
    given = [];
    $("question").hidden = false;
    $("result").hidden = true;
    ask();
  };

  $("question").addEventListener("change", () => {
    $("next").disabled = !(document.querySelector("[name=answer]:checked") && document.querySelector("[name=sure]:checked"));
  });
  $("question").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("next").disabled) return;
    const question = game[given.length], picked = Number(chosen("answer"));
    given.push({ question, picked, said: Number(chosen("sure")) / 100, right: picked === questions[question].answer });
    if (given.length < TEN) {
      ask();
      document.querySelector("[name=answer]").focus();
      return;
    }
    kept.push(...given.map(({ question: q, said, right }) => ({ question: q, said, right })));
    keep();
    showResult();
    $("verdict").focus();
  });

  /* -- the result ------------------------------------------------------------------------------ */

  const rowsOf = (answers) => c.sortRows(answers.map((a) => a.said), answers.map((a) => Number(a.right)));
  const judge = (rows) => ({ n: rows.scores.length, says: c.mean(rows.scores), right: c.mean(rows.outcomes), binned: c.makeBins(rows, BINS),
    ece: c.ece(c.makeBins(rows, BINS)), ...byChance(rows.scores) });
  const byChance = (scores) => {
    const next = c.random(7);
    const draws = Array.from({ length: 1000 }, () => c.ece(c.makeBins({ scores, outcomes: scores.map((s) => (next() < s ? 1 : 0)) }, BINS)));
    return { chance: c.mean(draws), upper: c.quantile(draws.sort((a, b) => a - b), 0.95) };
  };
  const dots = (host, bins, label) => {
    const { svg, x, y } = makePlot(host, { label, xs: [0.45, 1], ys: [0, 1], xTitle: "what is said (confidence)", yTitle: "how often it is right, %",
      ticks: { x: [0.5, 0.6, 0.7, 0.8, 0.9, 1] } });
    put(svg, "line", { x1: x(0.45), y1: y(0.45), x2: x(1), y2: y(1), class: "calibrated" });
    const filled = bins.filter((b) => b.count > 0), most = Math.max(...filled.map((b) => b.count));
    for (const b of filled) {
      const [low, high] = c.wilson(b.accuracy, b.count), at = x(b.confidence);
      put(svg, "line", { x1: at, x2: at, y1: y(b.confidence), y2: y(b.accuracy), stroke: `var(--c${b.confidence > b.accuracy ? 1 : 0})`, "stroke-width": 9, opacity: 0.55 });
      put(svg, "line", { x1: at, x2: at, y1: y(low), y2: y(high), class: "whisker" });
      put(svg, "circle", { cx: at, cy: y(b.accuracy), r: 4 + 4 * Math.sqrt(b.count / most), class: "dot" });
    }
    host.replaceChildren(svg);
  };
  const sentence = ({ says, right }, who = "You say", is = "are right") => {
    const off = Math.round(1000 * (says - right)) / 10, side = off > 0 ? "overconfident" : "underconfident";
    return `${who} ${percent(says)}, ${is} ${percent(right)}: ${off === 0 ? "no gap on average" : `${side} by ${Math.abs(off)} points`}`;
  };

  const showResult = () => {
    const now = judge(rowsOf(given)), all = judge(rowsOf(kept));
    const theirs = judge(rowsOf(given.map(({ question: q }) => ({ said: questions[q].confidence, right: questions[q].network === questions[q].answer }))));
    $("question").hidden = true;
    $("result").hidden = false;
    $("verdict").textContent = sentence(now);
    const few = now.ece > now.upper ? "more than chance alone shows" : "no more than chance alone may show";
    $("verdict-more").textContent = `Your ECE is ${percent(now.ece)} on ten pictures, ${few} (${percent(now.chance)} on average, up to ${percent(now.upper)}). ` +
      (all.n > TEN ? `The diagram shows all your ${all.n} answers.` : "Ten answers are few: play again, and the diagram gathers them.");
    $("your-count").textContent = `${all.n} answers`;
    dots($("yours"), all.binned.bins, sentence(all));
    dots($("networks"), network.bins, sentence(network, "It says", "is right"));
    const rows = [["you, these ten", now], ...(all.n > TEN ? [["you, all answers", all]] : []), ["network, these ten", theirs], ["network, all images", network]];
    $("scores").replaceChildren(...rows.map(([who, one]) => {
      const row = makeElement("tr");
      row.append(makeElement("th", { scope: "row" }, who));
      const off = one.says - one.right;
      for (const text of [percent(one.says), percent(one.right), `${off < 0 ? "\u2212" : "+"}${Math.abs(100 * off).toFixed(1)}`, percent(one.ece), one.chance === undefined ? "" : percent(one.chance)])
        row.append(makeElement("td", { class: "n" }, text));
      return row;
    }));
    $("answers").replaceChildren(...given.map((a) => {
      const q = questions[a.question], item = makeElement("li"), canvas = makeElement("canvas", { width: 28, height: 28, "aria-hidden": "true" });
      paint(canvas, q.image);
      item.append(canvas, makeElement("b", {}, q.options[q.answer]), makeElement("br"));
      item.append(makeElement("span", { class: a.right ? "better" : "worse" }, `you: ${a.right ? "right" : "wrong"}`), `, ${percent(a.said, 0)}`, makeElement("br"));
      const hit = q.network === q.answer;
      item.append(makeElement("span", { class: hit ? "better" : "worse" }, `network: ${hit ? "right" : "wrong"}`), `, ${percent(q.confidence, 0)}`);
      return item;
    }));
  };

  /* -- the picture to share -------------------------------------------------------------------- */

  const INK = "#1c1c1c", QUIET = "#5e5e5e", GRID = "#e6e6e6", COLOURS = ["#0072b2", "#d55e00"]; // the light theme, on any screen
  const drawCard = (all) => {
    const canvas = makeElement("canvas", { width: 1200, height: 630 }), g = canvas.getContext("2d");
    const write = (text, x, y, size, { colour = INK, weight = 400, align = "left" } = {}) => {
      g.fillStyle = colour;
      g.font = `${weight} ${size}px "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif`;
      g.textAlign = align;
      g.fillText(text, x, y);
    };
    const line = (x1, y1, x2, y2, colour, width, dash = []) => {
      g.strokeStyle = colour;
      g.lineWidth = width;
      g.setLineDash(dash);
      g.beginPath();
      g.moveTo(x1, y1);
      g.lineTo(x2, y2);
      g.stroke();
      g.setLineDash([]);
    };
    g.fillStyle = "#ffffff";
    g.fillRect(0, 0, 1200, 630);
    write("How calibrated am I?", 60, 62, 24, { colour: QUIET });
    write(sentence(all, "I say", "am right"), 60, 112, 36, { weight: 700 });
    [["me", all.n, all.binned.bins], ["a network", network.rows, network.bins]].forEach(([who, n, bins], i) => {
      const left = 110 + 560 * i, wide = 440, top = 200, tall = 330;
      const x = (v) => left + (v - 0.45) / 0.55 * wide, y = (v) => top + (1 - v) * tall;
      write(`${who}: ${counted(n)} pictures`, left, top - 22, 22, { weight: 600 });
      for (const v of [0, 0.25, 0.5, 0.75, 1]) {
        line(left, y(v), left + wide, y(v), GRID, 1);
        write(`${100 * v}`, left - 10, y(v) + 6, 17, { colour: QUIET, align: "right" });
      }
      for (const v of [0.5, 0.6, 0.7, 0.8, 0.9, 1]) write(`${Math.round(100 * v)}`, x(v), top + tall + 26, 17, { colour: QUIET, align: "center" });
      write("confidence, %, against how often right, %", left + wide / 2, top + tall + 54, 17, { colour: QUIET, align: "center" });
      line(x(0.45), y(0.45), x(1), y(1), QUIET, 1.5, [6, 6]);
      for (const b of bins.filter((one) => one.count > 0)) {
        line(x(b.confidence), y(b.confidence), x(b.confidence), y(b.accuracy), `${COLOURS[b.confidence > b.accuracy ? 1 : 0]}90`, 12);
        const [low, high] = c.wilson(b.accuracy, b.count);
        line(x(b.confidence), y(low), x(b.confidence), y(high), INK, 1.2);
        g.fillStyle = INK;
        g.beginPath();
        g.arc(x(b.confidence), y(b.accuracy), 8, 0, 2 * Math.PI);
        g.fill();
      }
    });
    write("calibrant: on the dashed line, confidence is what it says", 60, 612, 17, { colour: QUIET });
    return canvas;
  };
  $("save").addEventListener("click", () => {
    const link = makeElement("a", { download: "calibration.png", href: drawCard(judge(rowsOf(kept))).toDataURL("image/png") });
    document.body.append(link);
    link.click();
    link.remove();
  });
  $("more").addEventListener("click", () => { start(); document.querySelector("[name=answer]").focus(); });
  $("forget").addEventListener("click", () => {
    kept.length = 0;
    try { localStorage.removeItem(KEY); } catch { /* nothing was kept */ }
    start();
  });
  onWidth($("yours"), () => { if (given.length === TEN && !$("result").hidden) showResult(); });
  start();
})();
