/* The passes, compiled once for each kind of processor: passes.c includes this file with LEVEL set to 512 (AVX-512),
 * 256 (AVX2 with FMA) or 0 (whatever the compiler aims at), and NAME(x) to a name of its own for each.
 *
 * All work on vectors of eight float64, and every row is summed in the same order at every level, so the results are
 * bit-identical on all processors with a fused multiply-add. */

#undef NAME
#undef TARGET
#if LEVEL == 512
#define NAME(x) x##_512
#define TARGET __attribute__((target("avx512f")))
#elif LEVEL == 256
#define NAME(x) x##_256
#define TARGET __attribute__((target("avx2,fma")))
#else
#define NAME(x) x##_any
#define TARGET
#endif
#undef INLINE
#define INLINE TARGET static inline __attribute__((always_inline))

/* -- vectors ---------------------------------------------------------------------------------------------------- */

#if LEVEL == 256
typedef union {
    vector v;
    whole w;
    __m256d half[2];
    __m256i bits[2];
} halves;
#endif

/* a b + c, rounded once where the processor can. */
INLINE vector NAME(fma)(vector a, vector b, vector c) {
#if LEVEL == 512
    return (vector)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif LEVEL == 256
    halves x = {a}, y = {b}, z = {c};
    for (int i = 0; i < 2; i++) z.half[i] = _mm256_fmadd_pd(x.half[i], y.half[i], z.half[i]);
    return z.v;
#elif defined(__aarch64__)
    union { vector v; float64x2_t part[4]; } x = {a}, y = {b}, z = {c};
    for (int i = 0; i < 4; i++) z.part[i] = vfmaq_f64(z.part[i], x.part[i], y.part[i]);
    return z.v;
#else
    return a * b + c;
#endif
}

/* v where it is not below the limit, else 0. */
INLINE vector NAME(zero_below)(vector x, double limit, vector v) {
#if LEVEL == 512
    return (vector)_mm512_maskz_mov_pd(_mm512_cmp_pd_mask((__m512d)x, (__m512d)fill(limit), _CMP_NLT_UQ), (__m512d)v);
#elif LEVEL == 256
    halves y = {x}, z = {v};
    const __m256d edge = _mm256_set1_pd(limit);
    for (int i = 0; i < 2; i++) z.half[i] = _mm256_and_pd(_mm256_cmp_pd(y.half[i], edge, _CMP_NLT_UQ), z.half[i]);
    return z.v;
#else
    for (int i = 0; i < WIDTH; i++) v[i] = x[i] < limit ? 0.0 : v[i];
    return v;
#endif
}

INLINE double NAME(sum)(vector v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

/* 2^(j / 8) times 2^1000, less j in the bits that adding the exponent brings with it. */
INLINE vector NAME(power)(whole bits) {
#if LEVEL == 512
    const __m512i found = _mm512_permutexvar_epi64((__m512i)bits, _mm512_loadu_si512(EIGHTHS));
    return (vector)((whole)found + (bits << 49));
#elif LEVEL == 256
    halves x = {.w = bits};
    for (int i = 0; i < 2; i++) {
        const __m256i at = _mm256_and_si256(x.bits[i], _mm256_set1_epi64x(7));
        const __m256i found = _mm256_i64gather_epi64((const long long *)EIGHTHS, at, 8);
        x.bits[i] = _mm256_add_epi64(found, _mm256_slli_epi64(x.bits[i], 49));
    }
    return x.v;
#else
    whole found;
    for (int i = 0; i < WIDTH; i++) found[i] = EIGHTHS[bits[i] & 7];
    return (vector)(found + (whole)((positive)bits << 49));
#endif
}

/* exp(x) for x <= 0: x = m ln 2 / 8 + r, a polynomial in r, and 2^(m / 8) from a table, 2^1000 too large until the end,
 * so that small results lose no digit that float64 has. Below -745.2 the result is 0; NaN gives NaN. The error is about
 * one unit in the last place. */
INLINE vector NAME(exp)(vector x) {
    const vector shift = fill(0x1.8p52);
    const vector t = NAME(fma)(x, fill(0x1.71547652b82fep3), shift), m = t - shift;
    const vector near = NAME(fma)(m, fill(-0x1.62e42fefa0000p-4), x);
    const vector r = NAME(fma)(m, fill(-0x1.cf79abc9e3b3ap-43), near), r2 = r * r;
    const vector high = NAME(fma)(r, fill(0x1.a01e2c15a33f3p-13), fill(0x1.6c1b7131a0993p-10));
    const vector mid = NAME(fma)(r, fill(0x1.1111110e10556p-7), fill(0x1.5555554e93acap-5));
    const vector low = NAME(fma)(r, fill(0x1.555555555556ap-3), fill(0x1.000000000002ep-1));
    const vector rest = NAME(fma)(r2, NAME(fma)(r2, NAME(fma)(r2, high, mid), low), r);
    const vector scale = NAME(power)((whole)t);
    return NAME(zero_below)(x, -745.2, NAME(fma)(scale, rest, scale) * fill(0x1p-1000));
}

/* A bit for each lane above the limit. */
INLINE unsigned NAME(above)(vector v, double limit) {
#if LEVEL == 512
    return _mm512_cmp_pd_mask((__m512d)v, (__m512d)fill(limit), _CMP_GT_OQ);
#elif LEVEL == 256
    halves x = {v};
    const __m256d edge = _mm256_set1_pd(limit);
    const int first = _mm256_movemask_pd(_mm256_cmp_pd(x.half[0], edge, _CMP_GT_OQ));
    return (unsigned)(first | _mm256_movemask_pd(_mm256_cmp_pd(x.half[1], edge, _CMP_GT_OQ)) << 4);
#else
    unsigned some = 0;
    for (int i = 0; i < WIDTH; i++) some |= (v[i] > limit ? 1u : 0u) << i;
    return some;
#endif
}

/* -- rows ------------------------------------------------------------------------------------------------------- */

/* A row of any type as float64 in `x`, filled up to whole vectors with its first number. */
INLINE void NAME(read)(const char *z, int type, ptrdiff_t k, ptrdiff_t step, double *x) {
    if (type == FLOAT64 && step == (ptrdiff_t)sizeof(double)) {
        memcpy(x, z, (size_t)k * sizeof(double));
    } else if (type == FLOAT64) {
        for (ptrdiff_t j = 0; j < k; j++) x[j] = *(const double *)(z + j * step);
    } else if (type == FLOAT32 && step == (ptrdiff_t)sizeof(float)) {
        const float *from = (const float *)z;
        for (ptrdiff_t j = 0; j < k; j++) x[j] = (double)from[j];
    } else if (type == FLOAT32) {
        for (ptrdiff_t j = 0; j < k; j++) x[j] = (double)*(const float *)(z + j * step);
    } else if (type == FLOAT16) {
        for (ptrdiff_t j = 0; j < k; j++) x[j] = from_half(*(const uint16_t *)(z + j * step));
    } else {
        for (ptrdiff_t j = 0; j < k; j++) x[j] = from_bfloat(*(const uint16_t *)(z + j * step));
    }
    for (ptrdiff_t j = k; j < whole_vectors(k); j++) x[j] = x[0];
}

/* The largest and the smallest number of a row; a NaN may hide either. */
INLINE void NAME(range)(const double *x, ptrdiff_t k, double *low, double *high) {
#if LEVEL == 512
    vector most = *(const vector *)x, least = most;
    for (ptrdiff_t j = WIDTH; j < k; j += WIDTH) {
        const vector v = *(const vector *)(x + j);
        most = (vector)_mm512_max_pd((__m512d)v, (__m512d)most);
        least = (vector)_mm512_min_pd((__m512d)v, (__m512d)least);
    }
#else
    double most[WIDTH], least[WIDTH];
    for (int i = 0; i < WIDTH; i++) most[i] = least[i] = x[i];
    for (ptrdiff_t j = WIDTH; j < k; j += WIDTH) {
        for (int i = 0; i < WIDTH; i++) {
            most[i] = x[j + i] > most[i] ? x[j + i] : most[i];
            least[i] = x[j + i] < least[i] ? x[j + i] : least[i];
        }
    }
#endif
    *high = most[0], *low = least[0];
    for (int i = 1; i < WIDTH; i++) {
        *high = most[i] > *high ? most[i] : *high;
        *low = least[i] < *low ? least[i] : *low;
    }
}

/* The first place of the largest number. */
INLINE ptrdiff_t NAME(place)(const double *x, ptrdiff_t k, double top) {
    ptrdiff_t j = 0;
#if LEVEL == 512
    const __m512d wanted = (__m512d)fill(top);
    for (; j < k; j += WIDTH) {
        const unsigned same = _mm512_cmp_pd_mask((__m512d) * (const vector *)(x + j), wanted, _CMP_EQ_OQ);
        if (same) {
            j += __builtin_ctz(same);
            break;
        }
    }
#else
    while (j < k && x[j] != top) j++;
#endif
    return j < k ? j : k - 1; /* nothing equals NaN */
}

/* Lanes of the last vector of a row that hold numbers of it. */
INLINE vector NAME(ends)(ptrdiff_t k) {
    vector kept;
    for (int i = 0; i < WIDTH; i++) kept[i] = k - (whole_vectors(k) - WIDTH) > i ? 1.0 : 0.0;
    return kept;
}

/* exp(x - top) of a row, into `e` (whole vectors, x itself will do), and their sum. */
INLINE double NAME(exponentials)(const double *x, ptrdiff_t k, double top, vector ends, double *e) {
    const vector shift = fill(top);
    vector total = fill(0.0);
    ptrdiff_t j = 0;
    for (; j + WIDTH < k; j += WIDTH) {
        const vector v = NAME(exp)(*(const vector *)(x + j) - shift);
        total += v;
        *(vector *)(e + j) = v;
    }
    const vector v = NAME(exp)(*(const vector *)(x + j) - shift) * ends;
    *(vector *)(e + j) = v;
    return NAME(sum)(total + v);
}

INLINE void NAME(divide)(const double *e, ptrdiff_t k, double by, double *into) {
    for (ptrdiff_t j = 0; j < k; j++) into[j] = e[j] / by;
}

/* -- passes ----------------------------------------------------------------------------------------------------- */

/* Every row: confidence, class, largest logit, sum of exp(logit - largest), and probabilities unless `probs` is null.
 * `carried` (or null) are classes whose probability is the confidence. `range` gets the smallest and the largest logit.
 * Returns the first row that holds a number that is not finite, or -1. */
TARGET static ptrdiff_t NAME(softmax)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                      ptrdiff_t step, const int64_t *carried, double *confidence, int64_t *predicted,
                                      double *largest, double *total, double *probs, double *range, double *room) {
    double *x = room, *e = room + whole_vectors(k);
    const vector ends = NAME(ends)(k);
    ptrdiff_t broken = -1;
    range[0] = INFINITY, range[1] = -INFINITY;
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, x);
        double low, top;
        NAME(range)(x, k, &low, &top);
        const double sum = NAME(exponentials)(x, k, top, ends, e);
        if (!(sum < INFINITY && low > -INFINITY) && broken < 0) broken = i; /* a NaN among them makes the sum NaN */
        range[0] = low < range[0] ? low : range[0];
        range[1] = top > range[1] ? top : range[1];
        const ptrdiff_t at = carried ? carried[i] : NAME(place)(x, k, top);
        predicted[i] = at;
        largest[i] = top;
        total[i] = sum;
        confidence[i] = (carried ? e[at] : 1.0) / sum;
        if (probs) NAME(divide)(e, k, sum, probs + i * k);
    }
    return broken;
}

/* Probabilities of some classes of every row, by the largest logit and the sum of exp of their whole rows. Class j of
 * row i goes to probs[i * k + j], or to probs[j * ahead + i] where `ahead` is not 0: eight rows at a time. */
TARGET static void NAME(probs)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step,
                               const double *largest, const double *total, double *probs, ptrdiff_t ahead,
                               double *room) {
    const ptrdiff_t wide = whole_vectors(k);
    const vector ends = NAME(ends)(k);
    double *x = room, *tile = room + wide; /* eight rows of whole vectors */
    for (ptrdiff_t first = 0; first < n; first += WIDTH) {
        const ptrdiff_t rows = n - first < WIDTH ? n - first : WIDTH;
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t i = first + r;
            NAME(read)(z + i * row_step, type, k, step, x);
            NAME(exponentials)(x, k, largest[i], ends, x);
            NAME(divide)(x, k, total[i], ahead ? tile + r * wide : probs + i * k);
        }
        if (!ahead) continue;
        for (ptrdiff_t j = 0; j < k; j++) {
            double *to = probs + j * ahead + first;
            for (ptrdiff_t r = 0; r < rows; r++) to[r] = tile[r * wide + j];
        }
    }
}

/* Of every row the largest logit and the logit of the label minus that; sums[0] of the mean minus the label's logit (by
 * the weights of rows, unless they are null), sums[1] the widest range of a row. */
TARGET static void NAME(levels)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step,
                                const int64_t *labels, const double *weights, double *top, double *label, double *sums,
                                double *room) {
    const vector ends = NAME(ends)(k);
    double away = 0, widest = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, room);
        double low;
        NAME(range)(room, k, &low, top + i);
        vector total = fill(0.0);
        ptrdiff_t j = 0;
        for (; j + WIDTH < k; j += WIDTH) total += *(const vector *)(room + j) - fill(top[i]);
        total += (*(const vector *)(room + j) - fill(top[i])) * ends;
        label[i] = room[labels[i]] - top[i];
        away += (weights ? weights[i] : 1.0) * (NAME(sum)(total) / (double)k - label[i]);
        widest = top[i] - low > widest ? top[i] - low : widest;
    }
    sums[0] = away;
    sums[1] = widest;
}

/* Sums over rows of d NLL / d s and of the variance of the scaled logits, s = ln(1 / T): what a Newton step needs.
 * `top` is the largest logit of each row, `label` the logit of its label minus that, `weights` may be null. */
TARGET static void NAME(temperature)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                     ptrdiff_t step, const double *top, const double *label, const double *weights,
                                     double beta, double *sums, double *room) {
    const vector ends = NAME(ends)(k), scale = fill(beta);
    double first = 0, second = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, room);
        const vector shift = fill(top[i]);
        vector total = fill(0.0), mean = fill(0.0), square = fill(0.0);
        for (ptrdiff_t j = 0; j < k; j += WIDTH) {
            const vector v = (*(const vector *)(room + j) - shift) * scale;
            const vector e = NAME(exp)(v) * (j + WIDTH < k ? fill(1.0) : ends);
            const vector ev = e * NAME(zero_below)(v, -745.2, v); /* 0 times -infinity is 0 here */
            total += e;
            mean += ev;
            square += ev * NAME(zero_below)(v, -745.2, v);
        }
        const double sum = NAME(sum)(total), m = NAME(sum)(mean) / sum, q = NAME(sum)(square) / sum;
        const double w = weights ? weights[i] : 1.0;
        first += w * (m - label[i] * beta);
        second += w * (q - m * m);
    }
    sums[0] = first;
    sums[1] = second;
}

/* The NLL of softmax(weight z + bias) summed over rows, by their weights unless these are null, and its gradients by
 * weight and bias, added to `by_weight` and `by_bias`, all three of whole vectors. */
TARGET static double NAME(vector_fit)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                      ptrdiff_t step, const int64_t *labels, const double *weights,
                                      const double *weight, const double *bias, double *by_weight, double *by_bias,
                                      double *room) {
    const vector ends = NAME(ends)(k);
    double *x = room, *u = room + whole_vectors(k), value = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, x);
        for (ptrdiff_t j = 0; j < k; j += WIDTH) {
            *(vector *)(u + j) = *(const vector *)(x + j) * *(const vector *)(weight + j) + *(const vector *)(bias + j);
        }
        for (ptrdiff_t j = k; j < whole_vectors(k); j++) u[j] = u[0];
        double low, top;
        NAME(range)(u, k, &low, &top);
        const double label = u[labels[i]] - top, w = weights ? weights[i] : 1.0;
        const double sum = NAME(exponentials)(u, k, top, ends, u);
        value += w * (log(sum) - label);
        const vector scale = fill(w / sum);
        u[labels[i]] -= sum; /* minus one, once divided */
        for (ptrdiff_t j = 0; j < k; j += WIDTH) {
            const vector off = *(const vector *)(u + j) * scale;
            *(vector *)(by_weight + j) += off * *(const vector *)(x + j);
            *(vector *)(by_bias + j) += off;
        }
    }
    return value;
}

/* Scores of rows, in one piece, become probabilities minus the labels, times the weights of rows unless these are
 * null. Returns the sum of the NLL, by the same weights. */
TARGET static double NAME(residuals)(char *scores, int type, ptrdiff_t n, ptrdiff_t k, const int64_t *labels,
                                     const double *weights, double *room) {
    const vector ends = NAME(ends)(k);
    const ptrdiff_t size = type == FLOAT64 ? (ptrdiff_t)sizeof(double) : (ptrdiff_t)sizeof(float);
    double value = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        char *row = scores + i * k * size;
        NAME(read)(row, type, k, size, room);
        double low, top;
        NAME(range)(room, k, &low, &top);
        const double label = room[labels[i]] - top, w = weights ? weights[i] : 1.0;
        const double sum = NAME(exponentials)(room, k, top, ends, room);
        value += w * (log(sum) - label);
        const double scale = w / sum;
        room[labels[i]] -= sum;
        if (type == FLOAT64)
            for (ptrdiff_t j = 0; j < k; j++) ((double *)row)[j] = room[j] * scale;
        else
            for (ptrdiff_t j = 0; j < k; j++) ((float *)row)[j] = (float)(room[j] * scale);
    }
    return value;
}

/* Sums of the bins of every class that hold scores above the first inner edge: at most `bins` of a row, because its
 * probabilities sum to one. What lies below goes into `low` (k, of whole vectors), by class.
 * counts, sums and positives are (k, bins). Scores are probabilities where `largest` is null. `right` says that a bin
 * holds its right edge. */
TARGET static void NAME(class_bins)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                    ptrdiff_t step, const double *largest, const double *total, const int64_t *labels,
                                    const double *edges, ptrdiff_t bins, int right, double *counts, double *sums,
                                    double *positives, double *low, double *room) {
    const vector ends = NAME(ends)(k);
    const double first = bins == 1 ? INFINITY : right ? edges[1] : nextafter(edges[1], -INFINITY);
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, room);
        if (largest) {
            NAME(exponentials)(room, k, largest[i], ends, room);
            NAME(divide)(room, k, total[i], room);
        }
        for (ptrdiff_t j = k; j < whole_vectors(k); j++) room[j] = 0;
        if (room[labels[i]] <= first) positives[labels[i] * bins] += 1;
        for (ptrdiff_t j = 0; j < k; j += WIDTH) {
            for (unsigned some = NAME(above)(*(const vector *)(room + j), first); some; some &= some - 1) {
                const ptrdiff_t c = j + __builtin_ctz(some);
                const double score = room[c];
                ptrdiff_t bin = (ptrdiff_t)(score * (double)bins);
                bin = bin < bins - 1 ? bin : bins - 1;
                while (bin > 0 && (right ? score <= edges[bin] : score < edges[bin])) bin--;
                while (bin < bins - 1 && (right ? score > edges[bin + 1] : score >= edges[bin + 1])) bin++;
                counts[c * bins + bin] += 1;
                sums[c * bins + bin] += score;
                if (labels[i] == c) positives[c * bins + bin] += 1;
                room[c] = 0; /* not among the low ones */
            }
            *(vector *)(low + j) += *(const vector *)(room + j);
        }
    }
}

/* Running sums of every row of `values` (b, n) into (b, n + 1), four rows at a time: each waits for itself only. */
TARGET static void NAME(prefix)(const double *values, ptrdiff_t b, ptrdiff_t n, double *sums) {
    ptrdiff_t i = 0;
    for (; i + 4 <= b; i += 4) {
        const double *from = values + i * n;
        double *to = sums + i * (n + 1), a = 0, c = 0, d = 0, e = 0;
        to[0] = to[n + 1] = to[2 * (n + 1)] = to[3 * (n + 1)] = 0;
        for (ptrdiff_t j = 0; j < n; j++) {
            to[j + 1] = a += from[j];
            to[(n + 1) + j + 1] = c += from[n + j];
            to[2 * (n + 1) + j + 1] = d += from[2 * n + j];
            to[3 * (n + 1) + j + 1] = e += from[3 * n + j];
        }
    }
    for (; i < b; i++) {
        double running = 0;
        sums[i * (n + 1)] = 0;
        for (ptrdiff_t j = 0; j < n; j++) sums[i * (n + 1) + j + 1] = running += values[i * n + j];
    }
}
