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

/* The sum of the lanes, in the same order at every level. */
INLINE double NAME(sum)(vector v) {
#if LEVEL == 512
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)v), _mm512_extractf64x4_pd((__m512d)v, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#elif LEVEL == 256
    const halves x = {v};
    const __m256d four = _mm256_add_pd(x.half[0], x.half[1]);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#else
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#endif
}

/* The larger and the smaller of two lanes; the second where one is NaN. */
INLINE vector NAME(larger)(vector a, vector b) {
#if LEVEL == 512
    return (vector)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif LEVEL == 256
    halves x = {a}, y = {b};
    for (int i = 0; i < 2; i++) x.half[i] = _mm256_max_pd(x.half[i], y.half[i]);
    return x.v;
#else
    for (int i = 0; i < WIDTH; i++) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
#endif
}

INLINE vector NAME(smaller)(vector a, vector b) {
#if LEVEL == 512
    return (vector)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif LEVEL == 256
    halves x = {a}, y = {b};
    for (int i = 0; i < 2; i++) x.half[i] = _mm256_min_pd(x.half[i], y.half[i]);
    return x.v;
#else
    for (int i = 0; i < WIDTH; i++) b[i] = a[i] < b[i] ? a[i] : b[i];
    return b;
#endif
}

/* The largest lane. */
INLINE double NAME(most)(vector v) {
#if LEVEL
#if LEVEL == 512
    const __m256d four = _mm256_max_pd(_mm512_castpd512_pd256((__m512d)v), _mm512_extractf64x4_pd((__m512d)v, 1));
#else
    const halves x = {v};
    const __m256d four = _mm256_max_pd(x.half[0], x.half[1]);
#endif
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
#else
    double top = v[0];
    for (int i = 1; i < WIDTH; i++) top = v[i] > top ? v[i] : top;
    return top;
#endif
}

/* 2^(j / 8) of the table, times 2^m / 8: the table is less j in the bits that adding the exponent brings with it. */
INLINE vector NAME(power)(whole bits, const int64_t *table) {
#if LEVEL == 512
    const __m512i eighth = _mm512_permutexvar_epi64((__m512i)bits, _mm512_loadu_si512(table));
    return (vector)((whole)eighth + (bits << 49));
#elif LEVEL == 256
    halves x = {.w = bits};
    for (int i = 0; i < 2; i++) {
        const __m256i at = _mm256_and_si256(x.bits[i], _mm256_set1_epi64x(7));
        const __m256i eighth = _mm256_i64gather_epi64((const long long *)table, at, 8);
        x.bits[i] = _mm256_add_epi64(eighth, _mm256_slli_epi64(x.bits[i], 49));
    }
    return x.v;
#else
    whole eighth;
    for (int i = 0; i < WIDTH; i++) eighth[i] = table[bits[i] & 7];
    return (vector)(eighth + (whole)((positive)bits << 49));
#endif
}

/* exp(x) for x <= 0, times the power of two of the table: x = m ln 2 / 8 + r, a polynomial in r, and 2^(m / 8). The
 * error is about one unit in the last place. */
INLINE vector NAME(scaled_exp)(vector x, const int64_t *table) {
    const vector shift = fill(0x1.8p52);
    const vector t = NAME(fma)(x, fill(0x1.71547652b82fep3), shift), m = t - shift;
    const vector near = NAME(fma)(m, fill(-0x1.62e42fefa0000p-4), x);
    const vector r = NAME(fma)(m, fill(-0x1.cf79abc9e3b3ap-43), near), r2 = r * r;
    const vector high = NAME(fma)(r, fill(0x1.a01e2c15a33f3p-13), fill(0x1.6c1b7131a0993p-10));
    const vector mid = NAME(fma)(r, fill(0x1.1111110e10556p-7), fill(0x1.5555554e93acap-5));
    const vector low = NAME(fma)(r, fill(0x1.555555555556ap-3), fill(0x1.000000000002ep-1));
    const vector rest = NAME(fma)(r2, NAME(fma)(r2, NAME(fma)(r2, high, mid), low), r);
    const vector scale = NAME(power)((whole)t, table);
    return NAME(fma)(scale, rest, scale);
}

/* exp(x) for every x <= 0, 2^1000 too large until the end, so that small results lose no digit that float64 has. Below
 * -745.2 the result is 0; NaN gives NaN. */
INLINE vector NAME(exp)(vector x) {
    return NAME(zero_below)(x, -745.2, NAME(scaled_exp)(x, LIFTED_EIGHTHS) * fill(0x1p-1000));
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

/* A bit for each lane that equals the number. */
INLINE uint64_t NAME(same)(vector v, double number) {
#if LEVEL == 512
    return _mm512_cmp_pd_mask((__m512d)v, (__m512d)fill(number), _CMP_EQ_OQ);
#elif LEVEL == 256
    halves x = {v};
    const __m256d wanted = _mm256_set1_pd(number);
    const int first = _mm256_movemask_pd(_mm256_cmp_pd(x.half[0], wanted, _CMP_EQ_OQ));
    return (uint64_t)(first | _mm256_movemask_pd(_mm256_cmp_pd(x.half[1], wanted, _CMP_EQ_OQ)) << 4);
#else
    uint64_t some = 0;
    for (int i = 0; i < WIDTH; i++) some |= (uint64_t)(v[i] == number) << i;
    return some;
#endif
}

/* The larger and the smaller of two lanes of float32, a bit for each lane that equals the number, and float64. */
#if LEVEL == 512
INLINE narrow NAME(larger_floats)(narrow a, narrow b) { return (narrow)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE narrow NAME(smaller_floats)(narrow a, narrow b) { return (narrow)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE uint64_t NAME(same_floats)(narrow v, float number) {
    return _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(number), _CMP_EQ_OQ);
}
INLINE vector NAME(widen)(const float *from) { return (vector)_mm512_cvtps_pd(_mm256_loadu_ps(from)); }
#elif LEVEL == 256
typedef union {
    narrow v;
    __m256 half[2];
} float_halves;
INLINE narrow NAME(larger_floats)(narrow a, narrow b) {
    float_halves x = {a}, y = {b};
    for (int i = 0; i < 2; i++) x.half[i] = _mm256_max_ps(x.half[i], y.half[i]);
    return x.v;
}
INLINE narrow NAME(smaller_floats)(narrow a, narrow b) {
    float_halves x = {a}, y = {b};
    for (int i = 0; i < 2; i++) x.half[i] = _mm256_min_ps(x.half[i], y.half[i]);
    return x.v;
}
INLINE uint64_t NAME(same_floats)(narrow v, float number) {
    float_halves x = {v};
    const __m256 wanted = _mm256_set1_ps(number);
    const int first = _mm256_movemask_ps(_mm256_cmp_ps(x.half[0], wanted, _CMP_EQ_OQ));
    return (uint64_t)(first | _mm256_movemask_ps(_mm256_cmp_ps(x.half[1], wanted, _CMP_EQ_OQ)) << 8);
}
INLINE vector NAME(widen)(const float *from) {
    const halves x = {.half = {_mm256_cvtps_pd(_mm_loadu_ps(from)), _mm256_cvtps_pd(_mm_loadu_ps(from + 4))}};
    return x.v;
}
#else
INLINE narrow NAME(larger_floats)(narrow a, narrow b) {
    for (int i = 0; i < FLOATS; i++) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
}
INLINE narrow NAME(smaller_floats)(narrow a, narrow b) {
    for (int i = 0; i < FLOATS; i++) b[i] = a[i] < b[i] ? a[i] : b[i];
    return b;
}
INLINE uint64_t NAME(same_floats)(narrow v, float number) {
    uint64_t some = 0;
    for (int i = 0; i < FLOATS; i++) some |= (uint64_t)(v[i] == number) << i;
    return some;
}
INLINE vector NAME(widen)(const float *from) {
    vector v;
    for (int i = 0; i < WIDTH; i++) v[i] = (double)from[i];
    return v;
}
#endif

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

/* Eight numbers of a row that lies side by side, as float64. */
INLINE vector NAME(load)(const void *x, int floats, ptrdiff_t j) {
    return floats ? NAME(widen)((const float *)x + j) : *(const vector *)((const double *)x + j);
}

/* Where a row lies that `load` reads, its own place if it is `plain`, and in `end` the last eight numbers: the vectors
 * before them overlap with it unless k is a multiple of eight. A row shorter than a vector stands behind copies of its
 * first number. */
INLINE const void *NAME(open)(const char *row, int type, int plain, ptrdiff_t k, ptrdiff_t step, double *copy,
                              vector *end) {
    const ptrdiff_t before = k < WIDTH ? WIDTH - k : 0, last = k + before - WIDTH;
    if (!plain) {
        NAME(read)(row, type, k, step, copy + before);
        for (ptrdiff_t j = 0; j < before; j++) copy[j] = copy[before];
    }
    const void *x = plain ? (const void *)row : copy;
    *end = NAME(load)(x, plain && type == FLOAT32, last);
    return x;
}

/* The lanes of the last eight numbers of a row that no vector before them has. */
INLINE vector NAME(fresh)(ptrdiff_t k) {
    vector kept;
    for (int i = 0; i < WIDTH; i++) kept[i] = i >= WIDTH - 1 - (k - 1) % WIDTH ? 1.0 : 0.0;
    return kept;
}

/* A bit for each of 16 numbers of float32, or else of eight, that equals the number. */
INLINE uint64_t NAME(same_at)(const void *x, int floats, int wide, ptrdiff_t j, double number) {
    return wide ? NAME(same_floats)(*(const narrow *)((const float *)x + j), (float)number)
                : NAME(same)(NAME(load)(x, floats, j), number);
}

/* The first place of the largest number, 64 at a time: it may be anywhere, so that branches would often go wrong. */
INLINE ptrdiff_t NAME(first_place)(const void *x, int floats, ptrdiff_t k, double top) {
    const int wide = floats && k >= FLOATS;
    const ptrdiff_t width = wide ? FLOATS : WIDTH, last = k - width;
    for (ptrdiff_t start = 0; start < last; start += 64) {
        uint64_t bits = 0;
        for (ptrdiff_t j = start; j < last && j < start + 64; j += width)
            bits |= NAME(same_at)(x, floats, wide, j, top) << (j - start);
        if (bits) return start + __builtin_ctzll(bits);
    }
    const uint64_t bits = NAME(same_at)(x, floats, wide, last, top);
    return last + (bits ? __builtin_ctzll(bits) : width - 1); /* nothing equals NaN */
}

/* The largest of the lanes of a row, and in `least` the smallest that were met so far; a NaN is passed over. */
INLINE vector NAME(limits)(const void *x, int floats, vector end, ptrdiff_t k, vector *least) {
    if (floats && k >= FLOATS) {
        narrow high = *(const narrow *)((const float *)x + k - FLOATS), low = high;
        for (ptrdiff_t j = 0; j < k - FLOATS; j += FLOATS) {
            const narrow v = *(const narrow *)((const float *)x + j);
            high = NAME(larger_floats)(v, high);
            low = NAME(smaller_floats)(v, low);
        }
        const float *highs = (const float *)&high, *lows = (const float *)&low;
        *least = NAME(smaller)(NAME(smaller)(NAME(widen)(lows), NAME(widen)(lows + WIDTH)), *least);
        return NAME(larger)(NAME(widen)(highs), NAME(widen)(highs + WIDTH));
    }
    vector most = end;
    *least = NAME(smaller)(end, *least);
    for (ptrdiff_t j = 0; j < k - WIDTH; j += WIDTH) {
        const vector v = NAME(load)(x, floats, j);
        most = NAME(larger)(v, most);
        *least = NAME(smaller)(v, *least);
    }
    return most;
}

/* Sums of exp(x - top) and of their squares, lane by lane, and exp itself in `e` unless it is null. `easy` if no
 * number is further than -EASY below the largest; `fresh` are the lanes of `end` that count. */
INLINE void NAME(sum_exp)(const void *x, int floats, vector end, ptrdiff_t last, double top, int easy, vector fresh,
                          double *e, vector *sums, vector *squares) {
    const vector shift = fill(top);
    for (ptrdiff_t j = 0; j < last; j += WIDTH) {
        const vector u = NAME(load)(x, floats, j) - shift;
        const vector v = easy ? NAME(scaled_exp)(u, EIGHTHS) : NAME(exp)(u);
        *sums += v;
        *squares = NAME(fma)(v, v, *squares);
        if (e) *(vector *)(e + j) = v;
    }
    const vector v = easy ? NAME(scaled_exp)(end - shift, EIGHTHS) : NAME(exp)(end - shift), kept = v * fresh;
    if (e) *(vector *)(e + last) = v;
    *sums += kept;
    *squares = NAME(fma)(kept, kept, *squares);
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

/* Every row: confidence, class, largest logit, sum of exp(logit - largest), sum of squared probabilities, and
 * probabilities unless `probs` is null. `carried` (or null) are classes whose probability is the confidence. `range`
 * gets the smallest and the largest logit. Whether all numbers are finite. Calls with one `next`, 0 at first, share the
 * rows: each takes a few, until none is left, so that a thread that begins late does less. */
INLINE int NAME(softmax_rows)(const char *z, int type, int plain, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                              ptrdiff_t step, const int64_t *carried, double *confidence, int64_t *predicted,
                              double *largest, double *total, double *square, double *probs, double *range,
                              double *room, int64_t *next) {
    const ptrdiff_t before = k < WIDTH ? WIDTH - k : 0, wide = k + before, last = wide - WIDTH;
    double *e = carried || probs ? room + whole_vectors(k) : NULL;
    const int floats = plain && type == FLOAT32;
    const ptrdiff_t few = 1 + FEW / k;
    const vector fresh = NAME(fresh)(k);
    vector least = fill(INFINITY);
    double highest = -INFINITY;
    int finite = 1;
    for (ptrdiff_t from; (from = __atomic_fetch_add(next, few, __ATOMIC_RELAXED)) < n;)
        for (ptrdiff_t i = from; i < n && i < from + few; i++) {
            vector end, sums = fill(0.0), squares = fill(0.0);
            const void *x = NAME(open)(z + i * row_step, type, plain, k, step, room, &end);
            const double top = NAME(most)(NAME(limits)(x, floats, end, wide, &least));
            if (NAME(above)(-least, -(top + EASY)))
                NAME(sum_exp)(x, floats, end, last, top, 0, fresh, e, &sums, &squares);
            else
                NAME(sum_exp)(x, floats, end, last, top, 1, fresh, e, &sums, &squares);
            const double sum = NAME(sum)(sums);
            finite &= sum < INFINITY; /* NaN and infinity make the sum NaN, minus infinity is left to `least` */
            highest = top > highest ? top : highest;
            ptrdiff_t at = carried ? carried[i] : NAME(first_place)(x, floats, wide, top) - before;
            at = at < 0 ? 0 : at;
            predicted[i] = at;
            largest[i] = top;
            total[i] = sum;
            if (square) square[i] = NAME(sum)(squares) / (sum * sum);
            confidence[i] = (carried ? e[before + at] : 1.0) / sum;
            if (probs) NAME(divide)(e + before, k, sum, probs + i * k);
        }
    range[0] = -NAME(most)(-least), range[1] = highest;
    return finite && range[0] > -INFINITY;
}

TARGET static int NAME(softmax)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step,
                                const int64_t *carried, double *confidence, int64_t *predicted, double *largest,
                                double *total, double *square, double *probs, double *range, double *room,
                                int64_t *next) {
#define ROWS(type, plain) \
    NAME(softmax_rows) \
    (z, type, plain, n, k, row_step, step, carried, confidence, predicted, largest, total, square, probs, range, room, \
     next)
    if (!is_plain(type, k, step)) return ROWS(type, 0);
    return type == FLOAT32 ? ROWS(FLOAT32, 1) : ROWS(FLOAT64, 1);
#undef ROWS
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

/* Add exp(u) and its products with u, u^2 and u^3, of the lanes that are kept. Below -1e4 they are all 0. */
INLINE void NAME(add_powers)(vector u, vector kept, vector powers[4]) {
    const vector v = NAME(larger)(u, fill(-1e4)), e = NAME(exp)(v) * kept, ev = e * v, evv = ev * v;
    powers[0] += e;
    powers[1] += ev;
    powers[2] += evv;
    powers[3] = NAME(fma)(evv, v, powers[3]);
}

/* Sums over rows of d NLL / d s and of the second and third cumulants of the scaled logits, s = ln(1 / T): what a step
 * of Halley's needs; sums[3] is the widest range of a row of scaled logits. `top` is the largest logit of each row,
 * `label` the logit of its label minus that, `weights` may be null. */
INLINE void NAME(temperature_rows)(const char *z, int type, int plain, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                   ptrdiff_t step, const double *top, const double *label, const double *weights,
                                   double beta, double *sums, double *room) {
    const ptrdiff_t last = k < WIDTH ? 0 : k - WIDTH;
    const vector fresh = NAME(fresh)(k), scale = fill(beta);
    double first = 0, second = 0, third = 0;
    vector least = fill(0.0);
    for (ptrdiff_t i = 0; i < n; i++) {
        vector end;
        const void *x = NAME(open)(z + i * row_step, type, plain, k, step, room, &end);
        const vector shift = fill(top[i]);
        vector powers[4] = {fill(0.0), fill(0.0), fill(0.0), fill(0.0)};
        for (ptrdiff_t j = 0; j < last; j += WIDTH) {
            const vector u = (NAME(load)(x, plain && type == FLOAT32, j) - shift) * scale;
            least = NAME(smaller)(u, least);
            NAME(add_powers)(u, fill(1.0), powers);
        }
        end = (end - shift) * scale;
        least = NAME(smaller)(end, least);
        NAME(add_powers)(end, fresh, powers);
        const double sum = NAME(sum)(powers[0]), m = NAME(sum)(powers[1]) / sum, q = NAME(sum)(powers[2]) / sum;
        const double w = weights ? weights[i] : 1.0;
        first += w * (m - label[i] * beta);
        second += w * (q - m * m);
        third += w * (NAME(sum)(powers[3]) / sum - m * (3 * q - 2 * m * m));
    }
    sums[0] = first, sums[1] = second, sums[2] = third, sums[3] = NAME(most)(-least);
}

TARGET static void NAME(temperature)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                     ptrdiff_t step, const double *top, const double *label, const double *weights,
                                     double beta, double *sums, double *room) {
#define ROWS(type, plain) \
    NAME(temperature_rows)(z, type, plain, n, k, row_step, step, top, label, weights, beta, sums, room)
    if (!is_plain(type, k, step))
        ROWS(type, 0);
    else if (type == FLOAT32)
        ROWS(FLOAT32, 1);
    else
        ROWS(FLOAT64, 1);
#undef ROWS
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
