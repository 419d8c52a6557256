/* The passes, compiled once for each kind of processor: passes.c includes this file with LEVEL set to 512 (AVX-512),
 * 256 (AVX2 with FMA) or 0 (whatever the compiler aims at), and NAME(x) to a name of its own for each.
 *
 * All work on vectors of 16 float64, in as many parts as the processor needs, and every row is summed in the same order
 * at every level, so the results are bit-identical on all processors with a fused multiply-add. */

#undef NAME
#undef TARGET
#undef LANES
#if LEVEL == 512
#define NAME(x) x##_512
#define TARGET __attribute__((target("avx512f")))
#define LANES 8
#elif LEVEL == 256
#define NAME(x) x##_256
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 4
#else
#define NAME(x) x##_any
#define TARGET
#define LANES 2
#endif
#undef PARTS
#undef FLOATS
#undef INLINE
#undef EACH
#define PARTS (WIDTH / LANES)
#define FLOATS (2 * LANES)
#define INLINE TARGET static inline __attribute__((always_inline))
#define EACH(i, n) for (int i = 0; i < (n); i++)

/* -- vectors ---------------------------------------------------------------------------------------------------- */

/* What one instruction works on: numbers of float64, whole numbers, and twice as many of float32. Steps are taken with
 * several parts at a time, since each step waits for the one before. */
typedef double NAME(part) __attribute__((vector_size(LANES * 8), aligned(8), may_alias));
typedef int64_t NAME(whole) __attribute__((vector_size(LANES * 8), aligned(8), may_alias));
typedef uint64_t NAME(positive) __attribute__((vector_size(LANES * 8), aligned(8), may_alias));
typedef float NAME(narrow) __attribute__((vector_size(LANES * 8), aligned(4), may_alias));
#undef part
#undef whole
#undef positive
#undef narrow
#define part NAME(part)
#define whole NAME(whole)
#define positive NAME(positive)
#define narrow NAME(narrow)

/* All numbers alike. Not by a loop over them: GCC would set one at a time. */
INLINE part NAME(fill)(double x) {
#if LEVEL == 512
    return (part)_mm512_set1_pd(x);
#elif LEVEL == 256
    return (part)_mm256_set1_pd(x);
#else
    return (part){x, x};
#endif
}
#undef fill
#define fill(x) NAME(fill)(x)

INLINE narrow NAME(fill_floats)(float x) {
#if LEVEL == 512
    return (narrow)_mm512_set1_ps(x);
#elif LEVEL == 256
    return (narrow)_mm256_set1_ps(x);
#else
    return (narrow){x, x, x, x};
#endif
}

/* a b + c, rounded once where the processor can. */
INLINE part NAME(fma)(part a, part b, part c) {
#if LEVEL == 512
    return (part)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif LEVEL == 256
    return (part)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
    return (part)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

/* The larger and the smaller of two numbers; the second where one is NaN. */
INLINE part NAME(larger)(part a, part b) {
#if LEVEL == 512
    return (part)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif LEVEL == 256
    return (part)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    const whole more = (whole)(a > b);
    return (part)(((whole)a & more) | ((whole)b & ~more));
#endif
}

INLINE part NAME(smaller)(part a, part b) {
#if LEVEL == 512
    return (part)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif LEVEL == 256
    return (part)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    const whole more = (whole)(a < b);
    return (part)(((whole)a & more) | ((whole)b & ~more));
#endif
}

INLINE narrow NAME(larger_floats)(narrow a, narrow b) {
#if LEVEL == 512
    return (narrow)_mm512_max_ps((__m512)a, (__m512)b);
#elif LEVEL == 256
    return (narrow)_mm256_max_ps((__m256)a, (__m256)b);
#else
    const whole more = (whole)(a > b);
    return (narrow)(((whole)a & more) | ((whole)b & ~more));
#endif
}

INLINE narrow NAME(smaller_floats)(narrow a, narrow b) {
#if LEVEL == 512
    return (narrow)_mm512_min_ps((__m512)a, (__m512)b);
#elif LEVEL == 256
    return (narrow)_mm256_min_ps((__m256)a, (__m256)b);
#else
    const whole more = (whole)(a < b);
    return (narrow)(((whole)a & more) | ((whole)b & ~more));
#endif
}

/* The sum of the numbers, in the same order at every level. */
INLINE double NAME(sum)(const part *v) {
#if LEVEL == 512
    const part few = v[0] + v[1];
#elif LEVEL == 256
    const part few = (v[0] + v[2]) + (v[1] + v[3]);
#else
    const part few = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#endif
#if LEVEL
#if LEVEL == 512
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)few), _mm512_extractf64x4_pd((__m512d)few, 1));
#else
    const __m256d four = (__m256d)few;
#endif
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#else
    return few[0] + few[1];
#endif
}

/* The largest number; a NaN may be passed over. */
INLINE double NAME(most)(part v) {
#if LEVEL
#if LEVEL == 512
    const __m256d four = _mm256_max_pd(_mm512_castpd512_pd256((__m512d)v), _mm512_extractf64x4_pd((__m512d)v, 1));
#else
    const __m256d four = (__m256d)v;
#endif
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
#else
    return v[0] > v[1] ? v[0] : v[1];
#endif
}

INLINE double NAME(most_floats)(narrow v) {
#if LEVEL
#if LEVEL == 512
    const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v, 1));
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256((__m512)v), upper);
#else
    const __m256 eight = (__m256)v;
#endif
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return (double)_mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
#else
    float top = v[0];
    for (int i = 1; i < FLOATS; i++) top = v[i] > top ? v[i] : top;
    return (double)top;
#endif
}

/* A bit for each number above the limit. */
INLINE unsigned NAME(above)(part v, double limit) {
#if LEVEL == 512
    return _mm512_cmp_pd_mask((__m512d)v, (__m512d)fill(limit), _CMP_GT_OQ);
#elif LEVEL == 256
    return (unsigned)_mm256_movemask_pd(_mm256_cmp_pd((__m256d)v, (__m256d)fill(limit), _CMP_GT_OQ));
#else
    unsigned some = 0;
    EACH(i, LANES) some |= (v[i] > limit ? 1u : 0u) << i;
    return some;
#endif
}

/* The numbers of `yes` where a is above b, else those of `no`. */
INLINE part NAME(where_above)(part a, part b, part yes, part no) {
#if LEVEL == 512
    return (part)_mm512_mask_mov_pd((__m512d)no, _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ), (__m512d)yes);
#elif LEVEL == 256
    return (part)_mm256_blendv_pd((__m256d)no, (__m256d)yes, _mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_GT_OQ));
#else
    const whole more = (whole)(a > b);
    return (part)(((whole)yes & more) | ((whole)no & ~more));
#endif
}

INLINE narrow NAME(where_floats_above)(narrow a, narrow b, narrow yes, narrow no) {
#if LEVEL == 512
    return (narrow)_mm512_mask_mov_ps((__m512)no, _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ), (__m512)yes);
#elif LEVEL == 256
    return (narrow)_mm256_blendv_ps((__m256)no, (__m256)yes, _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ));
#else
    const whole more = (whole)(a > b);
    return (narrow)(((whole)yes & more) | ((whole)no & ~more));
#endif
}

/* v where it is not below the limit, else 0. */
INLINE part NAME(zero_below)(part x, double limit, part v) {
#if LEVEL == 512
    return (part)_mm512_maskz_mov_pd(_mm512_cmp_pd_mask((__m512d)x, (__m512d)fill(limit), _CMP_NLT_UQ), (__m512d)v);
#elif LEVEL == 256
    return (part)_mm256_and_pd(_mm256_cmp_pd((__m256d)x, (__m256d)fill(limit), _CMP_NLT_UQ), (__m256d)v);
#else
    return (part)((whole)v & ~(whole)(x < fill(limit)));
#endif
}

/* The first numbers of a part, 0 for the others. */
INLINE part NAME(keep_first)(part v, int count) {
#if LEVEL == 512
    return (part)_mm512_maskz_mov_pd((__mmask8)((1 << count) - 1), (__m512d)v);
#else
    return (part)((whole)v & *(const whole *)(KEPT + 8 - count));
#endif
}

/* Numbers that lie side by side, as float64. */
INLINE part NAME(load)(const void *x, int floats, ptrdiff_t j) {
    if (!floats) return *(const part *)((const double *)x + j);
    const float *from = (const float *)x + j;
#if LEVEL == 512
    return (part)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif LEVEL == 256
    return (part)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
    part v;
    EACH(i, LANES) v[i] = (double)from[i];
    return v;
#endif
}

/* Only the first numbers, 0 for the others, which are not read. */
INLINE part NAME(load_first)(const double *x, int count) {
#if LEVEL == 512
    return (part)_mm512_maskz_loadu_pd((__mmask8)((1 << count) - 1), x);
#elif LEVEL == 256
    return (part)_mm256_maskload_pd(x, _mm256_loadu_si256((const __m256i *)(KEPT + 8 - count)));
#else
    part v = fill(0.0);
    EACH(i, LANES) if (i < count) v[i] = x[i];
    return v;
#endif
}

/* -- functions -------------------------------------------------------------------------------------------------- */

/* 2^(m / 8) for whole numbers m in the lowest bits of t, times 2^lift. */
INLINE void NAME(powers)(const part *t, int64_t lift, int parts, part *scale) {
#if LEVEL == 256 /* the lower and the upper half of each number by themselves, of two parts at a time */
    const __m256i low = _mm256_loadu_si256((const __m256i *)LOW), high = _mm256_loadu_si256((const __m256i *)HIGH);
    for (int i = 0; i < parts; i += 2) {
        const int other = i + 1 < parts ? i + 1 : i;
        const __m256i at = _mm256_castps_si256(_mm256_shuffle_ps((__m256)t[i], (__m256)t[other], 0x88));
        const __m256i lower = _mm256_permutevar8x32_epi32(low, at), eighth = _mm256_permutevar8x32_epi32(high, at);
        const __m256i lifted = _mm256_add_epi32(_mm256_slli_epi32(at, 17), _mm256_set1_epi32((int)lift << 20));
        const __m256i upper = _mm256_add_epi32(eighth, lifted);
        scale[i] = (part)_mm256_unpacklo_epi32(lower, upper);
        if (i + 1 < parts) scale[i + 1] = (part)_mm256_unpackhi_epi32(lower, upper);
    }
#else
    EACH(i, parts) {
#if LEVEL == 512
        const whole eighth = (whole)_mm512_permutexvar_epi64((__m512i)t[i], _mm512_loadu_si512(EIGHTHS));
#else
        whole eighth;
        EACH(l, LANES) eighth[l] = EIGHTHS[((whole)t[i])[l] & 7];
#endif
        scale[i] = (part)((positive)eighth + ((positive)t[i] << 49) + ((positive){0} + ((uint64_t)lift << 52)));
    }
#endif
}

/* 2^(x / 8) for x from LOWEST to 0, in place: x = m + r with a whole number m, a polynomial in r, and 2^(m / 8). The
 * error is at most 1e-15, relative. */
INLINE void NAME(quick_power)(part *x) {
    const int parts = AT_ONCE;
    const part shift = fill(0x1.8p52);
    part t[AT_ONCE], r[AT_ONCE], p[AT_ONCE], scale[AT_ONCE];
    EACH(i, parts) t[i] = x[i] + shift;
    EACH(i, parts) r[i] = x[i] - (t[i] - shift);
    EACH(i, parts) p[i] = NAME(fma)(r[i], fill(0x1.43067f6c93b2ap-31), fill(0x1.5d8efd9479d82p-25));
    EACH(i, parts) p[i] = NAME(fma)(p[i], r[i], fill(0x1.3b2ab71b87c8ep-19));
    EACH(i, parts) p[i] = NAME(fma)(p[i], r[i], fill(0x1.c6b08d544ef92p-14));
    EACH(i, parts) p[i] = NAME(fma)(p[i], r[i], fill(0x1.ebfbdff82b9c6p-9));
    EACH(i, parts) p[i] = NAME(fma)(p[i], r[i], fill(0x1.62e42fefa3d6ep-4));
    EACH(i, parts) p[i] = p[i] * r[i];
    NAME(powers)(t, 0, parts, scale);
    EACH(i, parts) x[i] = NAME(fma)(scale[i], p[i], scale[i]);
}

/* exp(x) for every x <= 0, in place, to about one unit in the last place: as above, but 2^1000 too large until the end,
 * so that small results lose no digit that float64 has. Below -745.2 the result is 0; NaN gives NaN. */
INLINE void NAME(exp)(part *x, int parts) {
    const part shift = fill(0x1.8p52);
    part t[PARTS], scale[PARTS];
    EACH(i, parts) t[i] = NAME(fma)(x[i], fill(0x1.71547652b82fep3), shift);
    NAME(powers)(t, 1000, parts, scale);
    EACH(i, parts) {
        const part m = t[i] - shift, near = NAME(fma)(m, fill(-0x1.62e42fefa0000p-4), x[i]);
        const part r = NAME(fma)(m, fill(-0x1.cf79abc9e3b3ap-43), near), r2 = r * r;
        const part high = NAME(fma)(r, fill(0x1.a01e2c15a33f3p-13), fill(0x1.6c1b7131a0993p-10));
        const part mid = NAME(fma)(r, fill(0x1.1111110e10556p-7), fill(0x1.5555554e93acap-5));
        const part low = NAME(fma)(r, fill(0x1.555555555556ap-3), fill(0x1.000000000002ep-1));
        const part rest = NAME(fma)(r2, NAME(fma)(r2, NAME(fma)(r2, high, mid), low), r);
        x[i] = NAME(zero_below)(x[i], -745.2, NAME(fma)(scale[i], rest, scale[i]) * fill(0x1p-1000));
    }
}

/* ln(x) for x >= 1, to about one unit in the last place: x = 2^m (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and
 * ln(1 + f) = 2 atanh(s) = f - s (f - R), where s = f / (2 + f) and R is a polynomial in s^2. */
INLINE part NAME(log)(part x) {
    const whole above = (whole)x - 0x3fe6a09e667f3bcd; /* the bits of sqrt(1/2) */
    const positive m = (positive)above >> 52;
    const part exponent = (part)(m | 0x4330000000000000) - fill(0x1p52);
    const part f = (part)((positive)x - (m << 52)) - fill(1.0), s = f / (fill(2.0) + f), z = s * s;
    part p = NAME(fma)(z, fill(0x1.2b584aae78a57p-3), fill(0x1.39fe606542ddep-3));
    p = NAME(fma)(p, z, fill(0x1.7462b4ab2ef6bp-3));
    p = NAME(fma)(p, z, fill(0x1.c71c62e5800a1p-3));
    p = NAME(fma)(p, z, fill(0x1.2492492df148dp-2));
    p = NAME(fma)(p, z, fill(0x1.99999999952e2p-2));
    p = NAME(fma)(p, z, fill(0x1.5555555555558p-1)) * z;
    const part of_f = NAME(fma)(s, p - f, f);
    return NAME(fma)(exponent, fill(0x1.62e42fefa39efp-1), NAME(fma)(exponent, fill(0x1.abc9e3b39803fp-56), of_f));
}

/* -- rows ------------------------------------------------------------------------------------------------------- */

/* Whether rows can be loaded from where they lie: float64 or float32 side by side, a part of them at least, and at
 * most as many as float32 can count. */
INLINE int NAME(is_plain)(int type, ptrdiff_t k, ptrdiff_t step) {
    return k >= LANES && k <= MOST_FLOATS &&
           ((type == FLOAT64 && step == (ptrdiff_t)sizeof(double)) ||
            (type == FLOAT32 && step == (ptrdiff_t)sizeof(float)));
}

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

/* Take in more numbers of a row, which lie `here`: in every lane the largest so far, its first place, the smallest. */
INLINE void NAME(update_top)(part v, part here, part *high, part *at, part *low) {
    *at = NAME(where_above)(v, *high, here, *at);
    *high = NAME(larger)(v, *high);
    *low = NAME(smaller)(v, *low);
}

INLINE void NAME(update_top_of_floats)(narrow v, narrow here, narrow *high, narrow *at, narrow *low) {
    *at = NAME(where_floats_above)(v, *high, here, *at);
    *high = NAME(larger_floats)(v, *high);
    *low = NAME(smaller_floats)(v, *low);
}

/* The largest number of a row and its first place; in `least` the smallest numbers that were met so far. A NaN may be
 * passed over. No branch depends on the numbers, since it would often go wrong. The last part may overlap with the one
 * before it. */
INLINE double NAME(top)(const double *x, ptrdiff_t k, part *least, int64_t *place) {
    const ptrdiff_t last = k < LANES ? 0 : k - LANES;
    part first, high = *(const part *)x, low = high;
    EACH(i, LANES) first[i] = i;
    part here = first, at = first;
    for (ptrdiff_t j = LANES; j < last; j += LANES)
        NAME(update_top)(*(const part *)(x + j), here += fill(LANES), &high, &at, &low);
    NAME(update_top)(*(const part *)(x + last), first + fill((double)last), &high, &at, &low);
    *least = NAME(smaller)(low, *least);
    const double top = NAME(most)(high);
    at = NAME(where_above)(fill(top), high, fill((double)(k - 1)), at); /* of lanes without it: no place before it */
    *place = -(int64_t)NAME(most)(-at);
    return top;
}

/* The same of float32, of which there are FLOATS at least. */
INLINE double NAME(top_of_floats)(const float *x, ptrdiff_t k, narrow *least, int64_t *place) {
    const ptrdiff_t last = k - FLOATS;
    narrow first, high = *(const narrow *)x, low = high;
    EACH(i, FLOATS) first[i] = (float)i;
    narrow here = first, at = first;
    for (ptrdiff_t j = FLOATS; j < last; j += FLOATS)
        NAME(update_top_of_floats)(*(const narrow *)(x + j), here += NAME(fill_floats)(FLOATS), &high, &at, &low);
    NAME(update_top_of_floats)(*(const narrow *)(x + last), first + NAME(fill_floats)((float)last), &high, &at, &low);
    *least = NAME(smaller_floats)(low, *least);
    const double top = NAME(most_floats)(high);
    at = NAME(where_floats_above)(NAME(fill_floats)((float)top), high, NAME(fill_floats)((float)(k - 1)), at);
    *place = -(int64_t)NAME(most_floats)(-at);
    return top;
}

INLINE double NAME(number)(const void *x, int floats, ptrdiff_t j) {
    return floats ? (double)((const float *)x)[j] : ((const double *)x)[j];
}

/* (x - top) scale of a row, of k numbers or a part at least; fetches what lies so many bytes ahead, unless 0. */
INLINE void NAME(subtract)(const void *x, int floats, ptrdiff_t k, double top, double scale, ptrdiff_t ahead,
                           double *u) {
    const ptrdiff_t last = k < LANES ? 0 : k - LANES;
    const ptrdiff_t size = floats ? (ptrdiff_t)sizeof(float) : (ptrdiff_t)sizeof(double);
    for (ptrdiff_t j = 0; j < last; j += LANES) {
        if (ahead) __builtin_prefetch((const char *)x + j * size + ahead);
        *(part *)(u + j) = (NAME(load)(x, floats, j) - fill(top)) * fill(scale);
    }
    *(part *)(u + last) = (NAME(load)(x, floats, last) - fill(top)) * fill(scale);
}

/* 2^(u / 8) of n numbers and those up to AT_ONCE parts into `e`, u itself will do; LOWEST for what is below. */
INLINE void NAME(quick_powers)(const double *u, ptrdiff_t n, double *e) {
    for (ptrdiff_t j = 0; j < n; j += AT_ONCE * LANES) {
        part v[AT_ONCE];
        EACH(i, AT_ONCE) v[i] = NAME(larger)(fill(LOWEST), *(const part *)(u + j + i * LANES));
        NAME(quick_power)(v);
        EACH(i, AT_ONCE) *(part *)(e + j + i * LANES) = v[i];
    }
}

/* A part of a row of k numbers, 0 behind its end. */
INLINE part NAME(inside)(const double *x, ptrdiff_t k, ptrdiff_t j) {
    const part v = *(const part *)(x + j);
    return k - j >= LANES ? v : NAME(keep_first)(v, k - j > 0 ? (int)(k - j) : 0);
}

/* The sums of a row and of its squares. */
INLINE void NAME(sum_row)(const double *e, ptrdiff_t k, double *sum, double *square) {
    part sums[PARTS], squares[PARTS];
    EACH(i, PARTS) sums[i] = squares[i] = fill(0.0);
    ptrdiff_t j = 0;
    for (; j + WIDTH <= k; j += WIDTH) {
        EACH(i, PARTS) {
            const part v = *(const part *)(e + j + i * LANES);
            sums[i] += v;
            squares[i] = NAME(fma)(v, v, squares[i]);
        }
    }
    if (j < k) {
        EACH(i, PARTS) {
            const part v = NAME(inside)(e, k, j + i * LANES);
            sums[i] += v;
            squares[i] = NAME(fma)(v, v, squares[i]);
        }
    }
    *sum = NAME(sum)(sums), *square = NAME(sum)(squares);
}

/* exp(x - top) of a row that `read` has filled up, into `e` (as long, x itself will do), and their sum; `exact` to the
 * last digit, else quickly. */
INLINE double NAME(exponentials)(const double *x, ptrdiff_t k, double top, int exact, double *e) {
    double sum, square;
    const double scale = exact ? 1.0 : EIGHTHS_PER_NAT;
    for (ptrdiff_t j = 0; j < k; j += LANES) *(part *)(e + j) = (*(const part *)(x + j) - fill(top)) * fill(scale);
    ptrdiff_t j = 0;
    if (exact) {
        for (; j + WIDTH <= k; j += WIDTH) NAME(exp)((part *)(e + j), PARTS);
        for (; j < k; j += LANES) NAME(exp)((part *)(e + j), 1);
    } else {
        NAME(quick_powers)(e, k, e);
    }
    NAME(sum_row)(e, k, &sum, &square);
    return sum;
}

INLINE void NAME(divide)(const double *e, ptrdiff_t k, double by, double *into) {
    for (ptrdiff_t j = 0; j < k; j++) into[j] = e[j] / by;
}

/* -- passes ----------------------------------------------------------------------------------------------------- */

/* From sums of rows to what is asked of them, in place: confidences, where these are not those of the largest logit,
 * from their logit minus the largest; sums of squared probabilities; and the log-probability of each label, and from it
 * the probability, or null, from the same difference. */
INLINE void NAME(finish)(ptrdiff_t n, int carried, const double *total, double *confidence, double *square,
                         double *log_prob, double *prob) {
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const int count = n - i < LANES ? (int)(n - i) : LANES;
        const size_t bytes = (size_t)count * sizeof(double);
        const part sum = NAME(load_first)(total + i, count);
        part of_top = fill(1.0), squares = NAME(load_first)(square + i, count) / (sum * sum);
        if (carried) {
            of_top = NAME(load_first)(confidence + i, count);
            NAME(exp)(&of_top, 1);
        }
        of_top /= sum;
        memcpy(confidence + i, &of_top, bytes);
        memcpy(square + i, &squares, bytes);
        if (!log_prob) continue;
        part off = NAME(load_first)(log_prob + i, count), logs = off - NAME(log)(sum);
        NAME(exp)(&off, 1);
        off /= sum;
        memcpy(log_prob + i, &logs, bytes);
        memcpy(prob + i, &off, bytes);
    }
}

/* Rows of few classes, class by class, so that each step takes many rows: their largest logits, the first places of
 * these, the logits of labels and of carried classes (each or null) minus the largest, the sums of exp and of squares.
 * `u` has room for ROWS_OF_FEW of each class. Returns whether all labels are classes. */
INLINE int NAME(softmax_of_few)(const char *z, int type, ptrdiff_t rows, ptrdiff_t k, ptrdiff_t row_step,
                                ptrdiff_t step, const int64_t *labels, const int64_t *carried, double *largest,
                                int64_t *place, double *of_label, double *of_carried, double *total, double *square,
                                part *least, double *u) {
    const ptrdiff_t wide = whole_vectors(rows);
    const size_t bytes = (size_t)rows * sizeof(double);
    double tops[ROWS_OF_FEW], sums[ROWS_OF_FEW], squares[ROWS_OF_FEW];
    int64_t places[ROWS_OF_FEW];
    int classes = 1;
    EACH(j, k) NAME(read)(z + j * step, type, rows, row_step, u + j * ROWS_OF_FEW);
    for (ptrdiff_t r = 0; r < wide; r += LANES) {
        part high = *(const part *)(u + r), low = high;
        whole at = {0};
        for (int j = 1; j < k; j++) {
            const part v = *(const part *)(u + j * ROWS_OF_FEW + r);
            const whole more = (whole)(v > high);
            at = (at & ~more) | (more & j);
            high = NAME(larger)(v, high);
            low = NAME(smaller)(v, low);
        }
        *(part *)(tops + r) = high, *(whole *)(places + r) = at;
        *least = NAME(smaller)(low, *least);
    }
    memcpy(largest, tops, bytes), memcpy(place, carried ? carried : places, bytes);
    if (carried) EACH(r, rows) of_carried[r] = u[class_in(carried[r], k) * ROWS_OF_FEW + r] - tops[r];
    if (labels) {
        EACH(r, rows) {
            const int64_t label = class_in(labels[r], k);
            classes &= label == labels[r];
            of_label[r] = u[label * ROWS_OF_FEW + r] - tops[r];
        }
    }
    EACH(j, k) {
        double *v = u + j * ROWS_OF_FEW;
        for (ptrdiff_t r = 0; r < wide; r += LANES)
            *(part *)(v + r) = (*(const part *)(v + r) - *(const part *)(tops + r)) * fill(EIGHTHS_PER_NAT);
        NAME(quick_powers)(v, wide, v);
    }
    for (ptrdiff_t r = 0; r < wide; r += LANES) {
        part sum = *(const part *)(u + r), squared = sum * sum;
        for (int j = 1; j < k; j++) {
            const part v = *(const part *)(u + j * ROWS_OF_FEW + r);
            sum += v;
            squared = NAME(fma)(v, v, squared);
        }
        *(part *)(sums + r) = sum, *(part *)(squares + r) = squared;
    }
    memcpy(total, sums, bytes), memcpy(square, squares, bytes);
    return classes;
}

/* Every row: confidence, class, largest logit, sum of exp(logit - largest), sum of squared probabilities, and the
 * log-probability and the probability of its label unless `labels` is null, in columns of n numbers each. `carried` (or
 * null) are classes whose probability is the confidence. `range` gets the smallest and the largest logit. Returns 1 if
 * all numbers are finite, plus 2 if all labels are classes. Calls with one `next`, 0 at first, share the rows: each
 * takes a few, until none is left, so that a thread that begins late does less. */
INLINE int NAME(softmax_rows)(const char *z, int type, int plain, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                              ptrdiff_t step, const int64_t *labels, const int64_t *carried, double *columns,
                              double *range, double *room, int64_t *next) {
    double *confidence = columns, *largest = columns + 2 * n, *total = columns + 3 * n, *square = columns + 4 * n;
    double *label = columns + 5 * n, *label_prob = columns + 6 * n;
    int64_t *predicted = (int64_t *)(void *)(columns + n);
    const int floats = plain && type == FLOAT32;
    const ptrdiff_t few = rows_in_turn(k), block = k < FEW_CLASSES ? ROWS_OF_FEW : plain ? 1 + CACHE / k : TILE;
    double *e = room + TILE * whole_vectors(k);
    const ptrdiff_t ahead = plain ? bytes_ahead(n, block, row_step) : 0;
    const ptrdiff_t apart = plain ? row_step : whole_vectors(k) * (ptrdiff_t)sizeof(double);
    part least = fill(INFINITY);
    narrow least_floats;
    EACH(i, FLOATS) least_floats[i] = INFINITY;
    double highest = -INFINITY;
    int finite = 1, classes = 1;
    for (ptrdiff_t from; (from = __atomic_fetch_add(next, few, __ATOMIC_RELAXED)) < n;) {
        const ptrdiff_t end = from + few < n ? from + few : n;
        for (ptrdiff_t start = from; start < end; start += block) { /* no row waits for the one before it */
            const ptrdiff_t rows = end - start < block ? end - start : block;
            const char *first = z + start * row_step;
            if (k < FEW_CLASSES) {
                classes &= NAME(softmax_of_few)(
                    first, type, rows, k, row_step, step, labels ? labels + start : NULL,
                    carried ? carried + start : NULL, largest + start, predicted + start, label + start,
                    confidence + start, total + start, square + start, &least, room);
                continue;
            }
            if (!plain) {
                EACH(r, rows) NAME(read)(first + r * row_step, type, k, step, room + r * whole_vectors(k));
                first = (const char *)room;
            }
            EACH(r, rows) {
                const void *x = first + r * apart;
                const ptrdiff_t i = start + r;
                const double top = floats ? NAME(top_of_floats)(x, k, &least_floats, predicted + i)
                                          : NAME(top)(x, k, &least, predicted + i);
                largest[i] = top;
                if (carried) predicted[i] = carried[i];
                if (carried) confidence[i] = NAME(number)(x, floats, class_in(carried[i], k)) - top;
                if (labels) {
                    const int64_t known = class_in(labels[i], k);
                    classes &= known == labels[i];
                    label[i] = NAME(number)(x, floats, known) - top;
                }
            }
            EACH(r, rows) {
                const double top = largest[start + r];
                NAME(subtract)(first + r * apart, floats, k, top, EIGHTHS_PER_NAT, ahead, e + r * k);
            }
            NAME(quick_powers)(e, rows * k, e);
            EACH(r, rows) NAME(sum_row)(e + r * k, k, total + start + r, square + start + r);
        }
        /* NaN and infinity make the sum NaN, minus infinity is left to `least` */
        for (ptrdiff_t i = from; i < end; i++) {
            finite &= total[i] < INFINITY;
            highest = largest[i] > highest ? largest[i] : highest;
        }
        NAME(finish)
        (end - from, carried != NULL, total + from, confidence + from, square + from, labels ? label + from : NULL,
         label_prob + from);
    }
    EACH(i, LANES) least[i] = least[i] < least_floats[i] ? least[i] : (double)least_floats[i];
    EACH(i, LANES) least[i] = least[i] < least_floats[LANES + i] ? least[i] : (double)least_floats[LANES + i];
    range[0] = -NAME(most)(-least), range[1] = highest;
    return (finite && range[0] > -INFINITY) | classes << 1;
}

TARGET static int NAME(softmax)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step,
                                const int64_t *labels, const int64_t *carried, double *columns, double *range,
                                double *room, int64_t *next) {
#define ROWS(type, plain) \
    NAME(softmax_rows)(z, type, plain, n, k, row_step, step, labels, carried, columns, range, room, next)
    if (k < FEW_CLASSES || !NAME(is_plain)(type, k, step)) return ROWS(type, 0);
    return type == FLOAT32 ? ROWS(FLOAT32, 1) : ROWS(FLOAT64, 1);
#undef ROWS
}

/* Probabilities of some classes of every row, by the largest logit and the sum of exp of their whole rows. Class j of
 * row i goes to probs[i * k + j], or to probs[j * ahead + i] where `ahead` is not 0: eight rows at a time. */
TARGET static void NAME(probs)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step,
                               const double *largest, const double *total, double *probs, ptrdiff_t ahead,
                               double *room) {
    const ptrdiff_t wide = whole_vectors(k);
    double *x = room, *tile = room + wide; /* eight rows of whole vectors */
    for (ptrdiff_t first = 0; first < n; first += TILE) {
        const ptrdiff_t rows = n - first < TILE ? n - first : TILE;
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t i = first + r;
            NAME(read)(z + i * row_step, type, k, step, x);
            NAME(exponentials)(x, k, largest[i], 1, x);
            NAME(divide)(x, k, total[i], ahead ? tile + r * wide : probs + i * k);
        }
        if (!ahead) continue;
        for (ptrdiff_t j = 0; j < k; j++) {
            double *to = probs + j * ahead + first;
            for (ptrdiff_t r = 0; r < rows; r++) to[r] = tile[r * wide + j];
        }
    }
}

/* Add e and its products with u, u^2 and u^3. */
INLINE void NAME(add_powers)(part u, part e, part *first, part *second, part *third, part *fourth) {
    const part v = NAME(larger)(fill(LOWEST), u), ev = e * v, evv = ev * v;
    *first += e;
    *second += ev;
    *third += evv;
    *fourth = NAME(fma)(evv, v, *fourth);
}

/* Sums over rows of d NLL / d s and of the second and third cumulants of the scaled logits, s = ln(1 / T): what a step
 * of Halley's needs; and the widest range of a row of scaled logits. Four numbers for each rows_in_turn(k) of the rows,
 * which calls with one `next` share as in `softmax_rows`. `top` is the largest logit of each row, `label` the logit of
 * its label minus that, `weights` may be null. */
INLINE void NAME(temperature_rows)(const char *z, int type, int plain, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                   ptrdiff_t step, const double *top, const double *label, const double *weights,
                                   double beta, double *sums, double *room, int64_t *next) {
    const int floats = plain && type == FLOAT32;
    const ptrdiff_t wide = whole_vectors(k), block = plain ? 1 + CACHE / k : TILE;
    double *u = room + TILE * wide, *e = u + CACHE + TILE * wide + WIDTH;
    const double scale = beta * EIGHTHS_PER_NAT, unit = 1 / EIGHTHS_PER_NAT; /* powers of u come in eighths, too */
    const ptrdiff_t few = rows_in_turn(k), ahead = plain ? bytes_ahead(n, block, row_step) : 0;
    for (ptrdiff_t from; (from = __atomic_fetch_add(next, few, __ATOMIC_RELAXED)) < n;) {
        const ptrdiff_t end = from + few < n ? from + few : n;
        double first = 0, second = 0, third = 0;
        part least = fill(0.0);
        for (ptrdiff_t start = from; start < end; start += block) { /* no row waits for the one before it */
            const ptrdiff_t rows = end - start < block ? end - start : block;
            EACH(r, rows) {
                const char *x = z + (start + r) * row_step;
                if (!plain) NAME(read)(x, type, k, step, room);
                NAME(subtract)(plain ? (const void *)x : room, floats, k, top[start + r], scale, ahead, u + r * k);
            }
            NAME(quick_powers)(u, rows * k, e);
            EACH(r, rows) {
                const double *v = u + r * k, *of_v = e + r * k;
                part powers[4][PARTS];
                EACH(power, 4) EACH(i, PARTS) powers[power][i] = fill(0.0);
                ptrdiff_t j = 0;
                for (; j + WIDTH <= k; j += WIDTH) {
                    EACH(i, PARTS) {
                        const part some = *(const part *)(v + j + i * LANES);
                        const part exps = *(const part *)(of_v + j + i * LANES);
                        least = NAME(smaller)(some, least);
                        NAME(add_powers)(some, exps, &powers[0][i], &powers[1][i], &powers[2][i], &powers[3][i]);
                    }
                }
                if (j < k) {
                    EACH(i, PARTS) {
                        const part some = NAME(inside)(v, k, j + i * LANES);
                        const part exps = NAME(inside)(of_v, k, j + i * LANES);
                        least = NAME(smaller)(some, least);
                        NAME(add_powers)(some, exps, &powers[0][i], &powers[1][i], &powers[2][i], &powers[3][i]);
                    }
                }
                const double per = 1 / NAME(sum)(powers[0]), m = NAME(sum)(powers[1]) * per * unit;
                const double q = NAME(sum)(powers[2]) * per * (unit * unit);
                const double c = NAME(sum)(powers[3]) * per * (unit * unit * unit);
                const double w = weights ? weights[start + r] : 1.0;
                first += w * (m - label[start + r] * beta);
                second += w * (q - m * m);
                third += w * (c - m * (3 * q - 2 * m * m));
            }
        }
        double *to = sums + from / few * 4;
        to[0] = first, to[1] = second, to[2] = third, to[3] = NAME(most)(-least) * unit;
    }
}

TARGET static void NAME(temperature)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                     ptrdiff_t step, const double *top, const double *label, const double *weights,
                                     double beta, double *sums, double *room, int64_t *next) {
#define ROWS(type, plain) \
    NAME(temperature_rows)(z, type, plain, n, k, row_step, step, top, label, weights, beta, sums, room, next)
    if (!NAME(is_plain)(type, k, step))
        ROWS(type, 0);
    else if (type == FLOAT32)
        ROWS(FLOAT32, 1);
    else
        ROWS(FLOAT64, 1);
#undef ROWS
}

/* The NLL of a row of scores from `read` by its weight, and the scores become exp(score - largest), less the sum of
 * them at the label; `scale` makes them the weight times the probabilities minus the label. */
INLINE double NAME(residual)(double *u, ptrdiff_t k, int64_t label, double weight, double *scale) {
    part least = fill(INFINITY);
    int64_t place;
    label = class_in(label, k);
    const double top = NAME(top)(u, k, &least, &place), of_label = u[label] - top;
    const double sum = NAME(exponentials)(u, k, top, 0, u);
    u[label] -= sum;
    *scale = weight / sum;
    return weight * (log(sum) - of_label);
}

/* The NLL of softmax(weight z + bias) summed over rows, by their weights unless these are null, and its gradients by
 * weight and bias, added to `by_weight` and `by_bias`, all three of whole vectors. */
TARGET static double NAME(vector_fit)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                      ptrdiff_t step, const int64_t *labels, const double *weights,
                                      const double *weight, const double *bias, double *by_weight, double *by_bias,
                                      double *room) {
    double *x = room, *u = room + whole_vectors(k), value = 0, scale;
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, x);
        for (ptrdiff_t j = 0; j < k; j++) u[j] = x[j] * weight[j] + bias[j];
        for (ptrdiff_t j = k; j < whole_vectors(k); j++) u[j] = u[0];
        value += NAME(residual)(u, k, labels[i], weights ? weights[i] : 1.0, &scale);
        for (ptrdiff_t j = 0; j < k; j++) {
            const double off = u[j] * scale;
            by_weight[j] += off * x[j];
            by_bias[j] += off;
        }
    }
    return value;
}

/* Scores of rows, in one piece, become probabilities minus the labels, times the weights of rows unless these are
 * null. Returns the sum of the NLL, by the same weights. */
TARGET static double NAME(residuals)(char *scores, int type, ptrdiff_t n, ptrdiff_t k, const int64_t *labels,
                                     const double *weights, double *room) {
    const ptrdiff_t size = type == FLOAT64 ? (ptrdiff_t)sizeof(double) : (ptrdiff_t)sizeof(float);
    double value = 0, scale;
    for (ptrdiff_t i = 0; i < n; i++) {
        char *row = scores + i * k * size;
        NAME(read)(row, type, k, size, room);
        value += NAME(residual)(room, k, labels[i], weights ? weights[i] : 1.0, &scale);
        if (type == FLOAT64)
            for (ptrdiff_t j = 0; j < k; j++) ((double *)row)[j] = room[j] * scale;
        else
            for (ptrdiff_t j = 0; j < k; j++) ((float *)row)[j] = (float)(room[j] * scale);
    }
    return value;
}

/* The equal-width bin of a score; `right` says that a bin holds its right edge. Scores outside [0, 1] go into the
 * outer bins and NaN into the first. */
INLINE ptrdiff_t NAME(bin_of)(double score, const double *edges, ptrdiff_t bins, int right) {
    const double place = score * (double)bins;
    ptrdiff_t bin = !(place > 0) ? 0 : place < (double)bins ? (ptrdiff_t)place : bins - 1;
    while (bin > 0 && (right ? score <= edges[bin] : score < edges[bin])) bin--;
    while (bin < bins - 1 && (right ? score > edges[bin + 1] : score >= edges[bin + 1])) bin++;
    return bin;
}

/* Sums of the bins of one score a row. Rows take turns in IN_TURN tables (bins, 4), for no row to wait for the one
 * before it: rows, sum of scores, positives, and a number to fill the vector. */
TARGET static void NAME(score_bins)(const double *scores, const uint8_t *outcomes, ptrdiff_t n, const double *edges,
                                    ptrdiff_t bins, int right, double *tables) {
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t bin = NAME(bin_of)(scores[i], edges, bins, right);
        const four row = {1.0, scores[i], (double)outcomes[i], 0.0};
        *(four *)(tables + 4 * (i % IN_TURN * bins + bin)) += row;
    }
}

/* Sums of the bins of every class that hold scores above the first inner edge: at most `bins` of a row, because its
 * probabilities sum to one. What lies below goes into `low` (k, of whole vectors), by class.
 * counts, sums and positives are (k, bins). Scores are probabilities where `largest` is null. */
TARGET static void NAME(class_bins)(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                    ptrdiff_t step, const double *largest, const double *total, const int64_t *labels,
                                    const double *edges, ptrdiff_t bins, int right, double *counts, double *sums,
                                    double *positives, double *low, double *room) {
    const double first = bins == 1 ? INFINITY : right ? edges[1] : nextafter(edges[1], -INFINITY);
    for (ptrdiff_t i = 0; i < n; i++) {
        NAME(read)(z + i * row_step, type, k, step, room);
        if (largest) {
            NAME(exponentials)(room, k, largest[i], 1, room);
            NAME(divide)(room, k, total[i], room);
        }
        for (ptrdiff_t j = k; j < whole_vectors(k); j++) room[j] = 0;
        const int64_t label = class_in(labels[i], k);
        if (room[label] <= first) positives[label * bins] += 1;
        for (ptrdiff_t j = 0; j < k; j += LANES) {
            for (unsigned some = NAME(above)(*(const part *)(room + j), first); some; some &= some - 1) {
                const ptrdiff_t c = j + __builtin_ctz(some);
                const double score = room[c];
                const ptrdiff_t bin = NAME(bin_of)(score, edges, bins, right);
                counts[c * bins + bin] += 1;
                sums[c * bins + bin] += score;
                if (label == c) positives[c * bins + bin] += 1;
                room[c] = 0; /* not among the low ones */
            }
            *(part *)(low + j) += *(const part *)(room + j);
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
