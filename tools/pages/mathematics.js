"use strict";
/* The mathematics of the pages, with the definitions of the library; tests/app/test_pages.py compares the two to 1e-9. */
window.calibrant = (() => {
  const FLOOR = 1e-12; // scores of 0 and 1 get a finite logit, as in the library

  /* -- random numbers -------------------------------------------------------------------------- */

  /* sfc32: uniform numbers in [0, 1), the same for the same seed. */
  const random = (seed) => {
    let a = 0x9e3779b9, b = 0x243f6a88, c = seed | 0, d = 1;
    const next = () => {
      const t = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = ((c << 21) | (c >>> 11)) + t | 0;
      return (t >>> 0) / 4294967296;
    };
    for (let i = 0; i < 20; i++) next();
    return next;
  };

  /* Normal numbers, by Box and Muller. */
  const normals = (count, next) => {
    const drawn = new Float64Array(count + 1);
    for (let i = 0; i < count; i += 2) {
      const radius = Math.sqrt(-2 * Math.log(1 - next())), angle = 2 * Math.PI * next();
      drawn[i] = radius * Math.cos(angle);
      drawn[i + 1] = radius * Math.sin(angle);
    }
    return drawn.subarray(0, count);
  };

  /* -- rows and bins --------------------------------------------------------------------------- */

  /* Scores in ascending order with their outcomes; an outcome may be a share. */
  const sortRows = (scores, outcomes) => {
    const order = Array.from(scores, (_, i) => i).sort((i, j) => scores[i] - scores[j]);
    return { scores: Float64Array.from(order, (i) => scores[i]), outcomes: Float64Array.from(order, (i) => outcomes[i]) };
  };

  /* How many of the ascending scores are at most x. */
  const upTo = (scores, x) => {
    let low = 0, high = scores.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (scores[middle] <= x) low = middle + 1; else high = middle;
    }
    return low;
  };

  const findCuts = (scores, bins, scheme) => {
    const n = scores.length, cuts = new Array(bins + 1), size = Math.floor(n / bins), more = n % bins;
    for (let m = 0; m <= bins; m++) cuts[m] = scheme === "width" ? upTo(scores, m / bins) : m * size + Math.min(m, more);
    cuts[0] = 0;
    cuts[bins] = n;
    return cuts;
  };

  /* Outcomes among the first `cut` rows; rows of one score that a cut divides share their outcomes evenly. */
  const outcomesBelow = (rows, sums, cut) => {
    const { scores } = rows;
    if (cut === 0 || cut === scores.length || scores[cut - 1] !== scores[cut]) return sums[cut];
    const high = upTo(scores, scores[cut]);
    let low = cut;
    while (low > 0 && scores[low - 1] === scores[cut]) low--;
    return sums[low] + (cut - low) / (high - low) * (sums[high] - sums[low]);
  };

  const prefixSums = (values) => {
    const sums = new Float64Array(values.length + 1);
    for (let i = 0; i < values.length; i++) sums[i + 1] = sums[i] + values[i];
    return sums;
  };

  /* Bins of equal width (closed on the right) or of equal numbers of rows, of sorted rows. */
  const makeBins = (rows, count, scheme = "width") => {
    const cuts = findCuts(rows.scores, count, scheme), n = rows.scores.length;
    const said = prefixSums(rows.scores), right = prefixSums(rows.outcomes), made = [];
    let before = 0;
    for (let m = 0; m < count; m++) {
      const after = scheme === "mass" ? outcomesBelow(rows, right, cuts[m + 1]) : right[cuts[m + 1]];
      const size = cuts[m + 1] - cuts[m], saidSum = said[cuts[m + 1]] - said[cuts[m]], rightSum = after - before;
      before = after;
      const [low, high] = scheme === "width" ? [m / count, (m + 1) / count]
        : size ? [rows.scores[cuts[m]], rows.scores[cuts[m + 1] - 1]] : [0, 0];
      made.push({ low, high, count: size, said: saidSum, right: rightSum,
        confidence: size ? saidSum / size : 0, accuracy: size ? rightSum / size : 0 });
    }
    return { bins: made, cuts, n };
  };

  const ece = ({ bins, n }) => bins.reduce((sum, b) => sum + Math.abs(b.said - b.right), 0) / n;
  const mce = ({ bins }) => bins.reduce((most, b) => Math.max(most, Math.abs(b.confidence - b.accuracy)), 0);

  const wilson = (share, count) => {
    const z = 1.959963984540054, below = 1 + z * z / count, centre = share + z * z / (2 * count);
    const half = z * Math.sqrt(share * (1 - share) / count + z * z / (4 * count * count));
    return [Math.max((centre - half) / below, 0), Math.min((centre + half) / below, 1)];
  };

  /* -- the interval of an ECE: docs/methods/intervals.md ----------------------------------------- */

  /* The gap of each bin, as a share of all rows, and its standard error. */
  const findGaps = (rows, binned) => {
    const { bins, cuts, n } = binned, value = new Float64Array(bins.length), error = new Float64Array(bins.length);
    for (let m = 0; m < bins.length; m++) {
      value[m] = (bins[m].said - bins[m].right) / n;
      let sum = 0, squares = 0;
      for (let i = cuts[m]; i < cuts[m + 1]; i++) {
        const residual = rows.scores[i] - rows.outcomes[i];
        sum += residual;
        squares += residual * residual;
      }
      const mean = sum / n;
      error[m] = Math.sqrt(Math.max(squares - 2 * mean * sum + mean * mean * n, 0)) / n;
    }
    return { value, error };
  };

  const quantile = (sorted, share) => {
    const place = share * (sorted.length - 1), low = Math.floor(place), high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
  };

  /* The 95 % interval. `noise` are normal numbers: a row of one for each bin, many rows. */
  const findInterval = (gaps, noise, level = 0.95) => {
    const { value, error } = gaps, bins = value.length, draws = Math.floor(noise.length / bins), tail = (1 - level) / 2;
    const floor = new Float64Array(draws), straight = new Float64Array(draws), kinked = new Float64Array(draws);
    const spread = new Float64Array(bins);
    let mean = 0;
    for (let r = 0; r < draws; r++) {
      for (let m = 0; m < bins; m++) {
        const e = noise[r * bins + m] * error[m];
        floor[r] += Math.abs(e);
        spread[m] += e * e;
      }
      mean += floor[r] / draws;
    }
    let variance = 0;
    for (let r = 0; r < draws; r++) variance += (floor[r] - mean) ** 2 / draws;
    const alike = variance > 0 ? (Math.PI / 2 - 1) * mean * mean / variance : 1; // bins that would be as steady
    const turn = Math.sqrt(Math.max(2 * Math.log(Math.max(alike, 1) / 20), 1));
    const near = Array.from(value, (v, m) => Math.abs(v) < turn * Math.sqrt(spread[m] / draws));
    let total = 0, above = 0;
    for (let m = 0; m < bins; m++) total += Math.abs(value[m]);
    for (let r = 0; r < draws; r++) {
      for (let m = 0; m < bins; m++) {
        const e = noise[r * bins + m] * error[m], along = Math.sign(value[m]) * e;
        straight[r] += along;
        kinked[r] += near[m] ? Math.abs(e) : along;
      }
      if (floor[r] >= total) above++;
    }
    const low = above / draws > tail ? 0 : Math.max(total - quantile(kinked.sort(), 1 - tail), 0);
    const high = Math.max(total - quantile(straight.sort(), tail), 0);
    return { value: total, low: Math.min(low, total), high: Math.min(Math.max(high, total), 1) };
  };

  /* -- other measures of sorted rows ----------------------------------------------------------- */

  const mean = (values) => { let sum = 0; for (const v of values) sum += v; return sum / values.length; };

  /* Chance that a right prediction has more confidence than a wrong one, ties counting half. */
  const auroc = (rows) => {
    const { scores, outcomes } = rows;
    let pairs = 0, wrongBelow = 0, rightAll = 0;
    for (let i = 0; i < scores.length;) {
      let right = 0, wrong = 0, j = i;
      for (; j < scores.length && scores[j] === scores[i]; j++) { right += outcomes[j]; wrong += 1 - outcomes[j]; }
      pairs += right * (wrongBelow + wrong / 2);
      wrongBelow += wrong;
      rightAll += right;
      i = j;
    }
    return pairs / (rightAll * wrongBelow);
  };

  /* Loss of a confidence as the probability of being right. */
  const nllOfScores = (rows) => {
    let sum = 0;
    for (let i = 0; i < rows.scores.length; i++) {
      const c = rows.scores[i], a = rows.outcomes[i];
      sum -= a * Math.log(Math.max(c, FLOOR)) + (1 - a) * Math.log(Math.max(1 - c, FLOOR));
    }
    return sum / rows.scores.length;
  };

  /* -- temperature ----------------------------------------------------------------------------- */

  const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
  const logit = (c) => Math.log(Math.max(c, FLOOR)) - Math.log(Math.max(1 - c, FLOOR));
  const scaleScore = (c, T) => sigmoid(logit(c) / T);

  const softmax = (logits, T = 1) => {
    const top = Math.max(...logits), e = Array.from(logits, (z) => Math.exp((z - top) / T));
    const total = e.reduce((sum, x) => sum + x, 0);
    return e.map((x) => x / total);
  };

  /* Newton's steps in s = ln(1 / T) inside a bracket; `derivatives(s)` are those of the mean loss. */
  const descend = (derivatives) => {
    let s = 0, low = -Infinity, high = Infinity;
    for (let i = 0; i < 200; i++) {
      const [first, second] = derivatives(s);
      if (first < 0) low = s; else high = s;
      let next = s + Math.max(-2, Math.min(2, second > 0 ? -first / second : -Math.sign(first)));
      if (!(next >= low && next <= high)) next = (low + high) / 2;
      const step = Math.abs(next - s);
      s = next;
      if (step < 1e-13 || Math.abs(s) > 12) break;
    }
    return Math.exp(-s);
  };

  /* The temperature of the lowest loss, of scores that are probabilities of being right. */
  const fitTemperatureOfScores = (rows) => {
    const z = Float64Array.from(rows.scores, logit);
    return descend((s) => {
      const beta = Math.exp(s);
      let first = 0, variance = 0;
      for (let i = 0; i < z.length; i++) {
        const x = beta * z[i], p = sigmoid(x);
        first += x * (p - rows.outcomes[i]);
        variance += x * x * p * (1 - p);
      }
      return [first / z.length, (first + variance) / z.length];
    });
  };

  /* The temperature of the lowest loss, of rows of k logits one behind the other. */
  const fitTemperature = (logits, labels, k) => descend((s) => {
    const beta = Math.exp(s), n = labels.length;
    let first = 0, variance = 0;
    for (let i = 0; i < n; i++) {
      let top = -Infinity, total = 0, m1 = 0, m2 = 0;
      for (let j = 0; j < k; j++) top = Math.max(top, logits[i * k + j]);
      for (let j = 0; j < k; j++) {
        const x = beta * (logits[i * k + j] - top), e = Math.exp(x);
        total += e;
        m1 += e * x;
        m2 += e * x * x;
      }
      m1 /= total;
      first += m1 - beta * (logits[i * k + labels[i]] - top);
      variance += m2 / total - m1 * m1;
    }
    return [first / n, (first + variance) / n];
  });

  /* Rows of logits at a temperature: sorted confidences and whether they are right, the mean loss, the accuracy. */
  const applyTemperature = (logits, labels, k, T) => {
    const n = labels.length, confidence = new Float64Array(n), correct = new Float64Array(n);
    let loss = 0;
    for (let i = 0; i < n; i++) {
      let best = 0, total = 0;
      for (let j = 1; j < k; j++) if (logits[i * k + j] > logits[i * k + best]) best = j;
      const top = logits[i * k + best];
      for (let j = 0; j < k; j++) total += Math.exp((logits[i * k + j] - top) / T);
      confidence[i] = 1 / total;
      correct[i] = best === labels[i] ? 1 : 0;
      loss += Math.log(total) - (logits[i * k + labels[i]] - top) / T;
    }
    return { rows: sortRows(confidence, correct), nll: loss / n, accuracy: mean(correct) };
  };

  /* -- models to play with --------------------------------------------------------------------- */

  /* A line through points (x ascending), as a function. */
  const through = (xs, ys) => (x) => {
    let i = 1;
    while (i < xs.length - 1 && x > xs[i]) i++;
    const share = (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
    return ys[i - 1] + share * (ys[i] - ys[i - 1]);
  };

  /* Confidences of a model at given quantiles. */
  const QUANTILES = { even: (u) => u, sure: (u) => u ** 0.25 }; // uniform, and Beta(4, 1)

  /* All rows there could be: a grid of confidences, each with its true accuracy as the outcome. */
  const population = (shape, accuracy, size = 20000) => {
    const scores = Float64Array.from({ length: size }, (_, i) => QUANTILES[shape]((i + 0.5) / size));
    return { scores, outcomes: scores.map(accuracy) };
  };

  /* n random rows of a model, already in ascending order: spacings of sorted uniform numbers are exponential. */
  const sampleRows = (shape, accuracy, n, next) => {
    const scores = new Float64Array(n), outcomes = new Float64Array(n), place = QUANTILES[shape];
    let sum = 0;
    for (let i = 0; i < n; i++) scores[i] = sum -= Math.log(1 - next());
    sum -= Math.log(1 - next());
    for (let i = 0; i < n; i++) {
      scores[i] = place(scores[i] / sum);
      outcomes[i] = next() < accuracy(scores[i]) ? 1 : 0;
    }
    return { scores, outcomes };
  };

  const lnGamma = (x) => { // Lanczos, g = 7, nine coefficients
    const c = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
      12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
    if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - lnGamma(1 - x);
    let sum = c[0];
    for (let i = 1; i < 9; i++) sum += c[i] / (x - 1 + i);
    const t = x + 6.5;
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  };

  /* The distribution function of Beta(a, b), by a continued fraction. */
  const betaShare = (a, b, x) => {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - betaShare(b, a, 1 - x);
    const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) + lnGamma(a + b) - lnGamma(a) - lnGamma(b)) / a;
    const tiny = 1e-300, safe = (v) => (Math.abs(v) < tiny ? tiny : v);
    let c = 1, d = 1 / safe(1 - (a + b) * x / (a + 1)), f = d;
    for (let m = 1; m < 300; m++) {
      const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / safe(1 + even * d);
      c = safe(1 + even / c);
      f *= c * d;
      const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / safe(1 + odd * d);
      c = safe(1 + odd / c);
      const change = c * d;
      f *= change;
      if (Math.abs(change - 1) < 1e-16) break;
    }
    return front * f;
  };

  /* The quantile of Beta(a, b): Newton's steps inside a bracket. */
  const betaQuantile = (a, b, share, start = a / (a + b)) => {
    const lnBeta = lnGamma(a) + lnGamma(b) - lnGamma(a + b);
    let low = 0, high = 1, x = start;
    for (let i = 0; i < 100; i++) {
      const off = betaShare(a, b, x) - share;
      if (off < 0) low = x; else high = x;
      const slope = Math.exp((a - 1) * Math.log(x) + (b - 1) * Math.log1p(-x) - lnBeta);
      let next = x - off / slope;
      if (!(next > low && next < high)) next = (low + high) / 2;
      if (Math.abs(next - x) < 1e-15 * x || high - low < 1e-16) return next;
      x = next;
    }
    return x;
  };

  /* n rows: right predictions have Beta confidences of one mean, wrong ones of another, both equally concentrated. */
  const twoGroups = ({ right, wrong, concentration, accuracy }, n) => {
    const rights = Math.round(accuracy * n), scores = [], outcomes = [];
    for (const [count, centre, outcome] of [[rights, right, 1], [n - rights, wrong, 0]]) {
      let x = centre;
      for (let i = 0; i < count; i++) {
        x = betaQuantile(concentration * centre, concentration * (1 - centre), (i + 0.5) / count, x);
        x = Math.min(Math.max(x, 1e-12), 1 - 1e-12);
        scores.push(x);
        outcomes.push(outcome);
      }
    }
    return sortRows(scores, outcomes);
  };

  return Object.freeze({ random, normals, sortRows, makeBins, ece, mce, wilson, findGaps, findInterval, quantile, mean, auroc,
    nllOfScores, sigmoid, logit, scaleScore, softmax, fitTemperatureOfScores, fitTemperature, applyTemperature, through,
    population, sampleRows, betaShare, betaQuantile, twoGroups });
})();
