/* Passes over rows of logits, in float64: the largest, its class, the sum of exp, the confidence, probabilities;
 * and the derivatives of the likelihood by a temperature.
 *
 * Plain C without Python: loaded by ctypes, which releases the lock of the interpreter. Written with the vectors of
 * GCC and Clang; other compilers are not used. Every row is summed in the same order on every processor, and no
 * multiplication is fused with an addition (-ffp-contract=off), so the results are bit-identical on all of them.
 */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC
#endif

/* GCC compiles each pass for three kinds of processors and picks one when the library is loaded. Clang 14 does not
 * inline across them; and sanitizers are not ready when the choice is made. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(CALIBRANT_SANITIZED)
#define CLONED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONED
#endif

#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 8 };

typedef double vector __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t whole __attribute__((vector_size(64), aligned(8), may_alias));

INLINE vector fill(double x) { return (vector){x, x, x, x, x, x, x, x}; }

INLINE vector choose(whole yes, vector a, vector b) { return (vector)((yes & (whole)a) | (~yes & (whole)b)); }

INLINE double sum_of(vector v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

/* exp(x) for x <= 0: x = m ln 2 + r, a polynomial in r, and 2^m in two factors, so that small results lose no digit
 * that float64 has. Below -745.2 the result is 0. The error is below one unit in the last place. */
INLINE vector exp_of(vector x) {
    const vector shift = fill(0x1.8p52), lowest = fill(-745.2);
    const whole gone = x < lowest;
    x = choose(gone, lowest, x);
    const vector t = x * fill(0x1.71547652b82fep0) + shift, m = t - shift;
    const vector r = (x - m * fill(0x1.62e42fefa0000p-1)) - m * fill(0x1.cf79abc9e3b3ap-40);
    const vector r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    /* Taylor's series to the 13th power, in pairs */
    const vector low = (fill(1.0) + r) + r2 * (fill(1.0 / 2) + r * fill(1.0 / 6));
    const vector mid = (fill(1.0 / 24) + r * fill(1.0 / 120)) + r2 * (fill(1.0 / 720) + r * fill(1.0 / 5040));
    const vector high = (fill(1.0 / 40320) + r * fill(1.0 / 362880)) +
                        r2 * (fill(1.0 / 3628800) + r * fill(1.0 / 39916800));
    const vector last = fill(1.0 / 479001600) + r * fill(1.0 / 6227020800.0);
    const vector p = (low + r4 * mid) + r8 * (high + r4 * last);
    const whole power = (whole)t - (whole)shift, half = power >> 1;
    const vector a = (vector)((half + 1023) << 52), b = (vector)((power - half + 1023) << 52);
    return choose(gone, fill(0.0), (p * a) * b);
}

INLINE double from_half(uint16_t h) {
    const uint64_t sign = (uint64_t)(h >> 15) << 63, exponent = (h >> 10) & 31, fraction = h & 1023;
    if (exponent == 0) { /* zero or subnormal */
        const double small = (double)fraction * 0x1p-24;
        return sign ? -small : small;
    }
    const uint64_t bits = exponent == 31 ? (sign | 0x7ffULL << 52 | fraction << 42)
                                         : (sign | (exponent + 1008) << 52 | fraction << 42);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE double from_bfloat(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

enum type { FLOAT64 = 0, FLOAT32 = 1, FLOAT16 = 2, BFLOAT16 = 3 };

/* Row i of the logits as float64: where it lies, if it is of that type and in one piece; else copied to `copy`. */
INLINE const double *row_of(const char *z, int type, ptrdiff_t k, ptrdiff_t step, double *copy) {
    if (type == FLOAT64) {
        if (step == (ptrdiff_t)sizeof(double)) return (const double *)z;
        for (ptrdiff_t j = 0; j < k; j++) copy[j] = *(const double *)(z + j * step);
    } else if (type == FLOAT32) {
        if (step == (ptrdiff_t)sizeof(float)) {
            const float *from = (const float *)z;
            for (ptrdiff_t j = 0; j < k; j++) copy[j] = (double)from[j];
        } else {
            for (ptrdiff_t j = 0; j < k; j++) copy[j] = (double)*(const float *)(z + j * step);
        }
    } else if (type == FLOAT16) {
        for (ptrdiff_t j = 0; j < k; j++) copy[j] = from_half(*(const uint16_t *)(z + j * step));
    } else {
        for (ptrdiff_t j = 0; j < k; j++) copy[j] = from_bfloat(*(const uint16_t *)(z + j * step));
    }
    return copy;
}

/* The largest of a row, and whether every number is finite. */
INLINE double largest_of(const double *x, ptrdiff_t k, int *finite) {
    vector most = fill(-INFINITY), off = fill(0.0);
    ptrdiff_t j = 0;
    for (; j + WIDTH <= k; j += WIDTH) {
        const vector v = *(const vector *)(x + j);
        off += v - v; /* NaN where v is NaN or infinite */
        most = choose(v > most, v, most);
    }
    double top = most[0];
    for (int i = 1; i < WIDTH; i++) top = most[i] > top ? most[i] : top;
    double rest = sum_of(off);
    for (; j < k; j++) {
        rest += x[j] - x[j];
        top = x[j] > top ? x[j] : top;
    }
    *finite = rest == 0;
    return top;
}

INLINE ptrdiff_t place_of(const double *x, ptrdiff_t k, double top) {
    ptrdiff_t j = 0;
    for (; j + WIDTH <= k; j += WIDTH) {
        const whole same = *(const vector *)(x + j) == fill(top);
        if (same[0] | same[1] | same[2] | same[3] | same[4] | same[5] | same[6] | same[7]) break;
    }
    while (j < k - 1 && x[j] != top) j++;
    return j;
}

/* Up to WIDTH numbers of a row, minus `top`; behind the end of the row -infinity, whose exp is 0. */
INLINE vector shifted_tail(const double *x, ptrdiff_t left, double top) {
    vector v = fill(-INFINITY);
    for (ptrdiff_t i = 0; i < left; i++) v[i] = x[i] - top;
    return v;
}

/* exp(x - top) of a row, summed; kept in `e` unless it is null. */
INLINE double exponentials(const double *x, ptrdiff_t k, double top, double *e) {
    vector total = fill(0.0);
    ptrdiff_t j = 0;
    for (; j + WIDTH <= k; j += WIDTH) {
        const vector v = exp_of(*(const vector *)(x + j) - fill(top));
        total += v;
        if (e) *(vector *)(e + j) = v;
    }
    if (j < k) {
        const vector v = exp_of(shifted_tail(x + j, k - j, top));
        total += v;
        if (e)
            for (ptrdiff_t i = 0; j + i < k; i++) e[j + i] = v[i];
    }
    return sum_of(total);
}

/* Every row: confidence, class, largest logit, sum of exp(logit - largest), and probabilities unless `probs` is null.
 * `carried` (or null) are classes whose probability is the confidence. `copy` has room for k numbers.
 * Returns the first row that holds a number that is not finite, or -1. */
CLONED PUBLIC ptrdiff_t calibrant_softmax(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                          ptrdiff_t step, const int64_t *carried, double *confidence,
                                          int64_t *predicted, double *largest, double *total, double *probs,
                                          double *copy) {
    ptrdiff_t broken = -1;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *x = row_of(z + i * row_step, type, k, step, copy);
        int finite;
        const double top = largest_of(x, k, &finite);
        if (!finite && broken < 0) broken = i;
        double *e = probs ? probs + i * k : (double *)0;
        const double sum = exponentials(x, k, top, e);
        double of_class = 1.0;
        if (carried) {
            const vector one = exp_of(fill(x[carried[i]] - top));
            of_class = one[0];
        }
        largest[i] = top;
        total[i] = sum;
        predicted[i] = carried ? carried[i] : place_of(x, k, top);
        confidence[i] = of_class / sum;
        if (e)
            for (ptrdiff_t j = 0; j < k; j++) e[j] /= sum;
    }
    return broken;
}

/* Probabilities of some classes of every row, by what `calibrant_softmax` found of its rows. */
CLONED PUBLIC void calibrant_probs(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step,
                                   const double *largest, const double *total, double *probs, double *copy) {
    for (ptrdiff_t i = 0; i < n; i++) {
        double *e = probs + i * k;
        exponentials(row_of(z + i * row_step, type, k, step, copy), k, largest[i], e);
        for (ptrdiff_t j = 0; j < k; j++) e[j] /= total[i];
    }
}

/* Sums over rows of d NLL / d s and of the variance of the scaled logits, s = ln(1 / T): what a Newton step needs.
 * `top` is the largest logit of each row, `label` the logit of its label minus that, `weights` may be null. */
CLONED PUBLIC void calibrant_temperature(const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step,
                                         ptrdiff_t step, const double *top, const double *label, const double *weights,
                                         double beta, double *copy, double *sums) {
    double first = 0, second = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *x = row_of(z + i * row_step, type, k, step, copy);
        vector total = fill(0.0), mean = fill(0.0), square = fill(0.0);
        const vector shift = fill(top[i]), scale = fill(beta);
        ptrdiff_t j = 0;
        for (; j + WIDTH <= k; j += WIDTH) {
            const vector v = (*(const vector *)(x + j) - shift) * scale;
            const vector e = exp_of(v), ev = e * choose(v < fill(-745.2), fill(0.0), v);
            total += e;
            mean += ev;
            square += ev * v;
        }
        for (; j < k; j++) {
            const double d = (x[j] - top[i]) * beta;
            const vector one = exp_of(fill(d));
            const double e = one[0], ev = d < -745.2 ? 0.0 : e * d;
            total[0] += e;
            mean[0] += ev;
            square[0] += d < -745.2 ? 0.0 : ev * d;
        }
        const double sum = sum_of(total), m = sum_of(mean) / sum, q = sum_of(square) / sum;
        const double w = weights ? weights[i] : 1.0;
        first += w * (m - label[i] * beta);
        second += w * (q - m * m);
    }
    sums[0] = first;
    sums[1] = second;
}

PUBLIC int calibrant_version(void) { return 1; }
