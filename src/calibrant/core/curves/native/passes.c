/* Passes over rows of logits, in float64: the largest, its class, the sum of exp, the confidence, probabilities; the
 * derivatives of the likelihood by a temperature and by the weights of linear maps; bins of class columns; hashes.
 *
 * Plain C without Python: loaded by ctypes, which releases the lock of the interpreter. Written with the vectors of
 * GCC and Clang; other compilers are not used. kernels.h holds the passes; this file compiles it for each kind of
 * processor and picks one when a pass is called. `room` is memory to work in: ROWS_OF_ROOM rows, each of k numbers
 * filled up to whole vectors, and twice CACHE numbers. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { WIDTH = 16, TILE = 8, ROWS_OF_ROOM = 3 * TILE + 2 };
enum { AT_ONCE = 4 }; /* parts whose powers are found together, since each step waits for the one before */
enum { MOST_FLOATS = 1 << 24 }; /* up to here float32 counts every place */

/* The numbers 2^(j / 8), as bits, less j in those that adding the exponent brings with it; and their two halves. */
#define EIGHTHS_AS(two) \
    two(0x3ff00000, 0x00000000), two(0x3fef72b8, 0x3c7d517b), two(0x3fef06fe, 0x0a31b715), \
        two(0x3feebfda, 0xd5362a27), two(0x3feea09e, 0x667f3bcd), two(0x3feeace5, 0x422aa0db), \
        two(0x3feee89f, 0x995ad3ad), two(0x3fef5818, 0xdcfba487)
#define BOTH(high, low) (int64_t)high << 32 | low
#define ONLY_HIGH(high, low) (uint32_t)high
#define ONLY_LOW(high, low) (uint32_t)low
static const int64_t EIGHTHS[8] = {EIGHTHS_AS(BOTH)};
#if defined(__x86_64__)
static const uint32_t HIGH[8] = {EIGHTHS_AS(ONLY_HIGH)}, LOW[8] = {EIGHTHS_AS(ONLY_LOW)};
#endif
static const int64_t KEPT[16] = {-1, -1, -1, -1, -1, -1, -1, -1}; /* a mask of n numbers starts n before its middle */
/* Numbers in the rows that a thread takes at a time, and in those that it takes through each step together. */
enum { FEW = 1 << 15, CACHE = 1 << 10 };
/* Fewer classes are worked on class by class, so many rows at a time. */
enum { FEW_CLASSES = 16, ROWS_OF_FEW = CACHE / FEW_CLASSES };
static const double EIGHTHS_PER_NAT = 0x1.71547652b82fep+3; /* 8 / ln 2: exp(x) = 2^(EIGHTHS_PER_NAT x / 8) */
static const double LOWEST = -8000; /* 2^(x / 8) of less adds nothing to a sum that holds a 2^0 */

enum { IN_TURN = 4 }; /* tables of bins that the rows take turns in */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

enum type { FLOAT64 = 0, FLOAT32 = 1, FLOAT16 = 2, BFLOAT16 = 3 };

static inline ptrdiff_t whole_vectors(ptrdiff_t k) { return (k + WIDTH - 1) / WIDTH * WIDTH; }

/* A class as an index of a row of k: no number from outside reaches beyond the row, whatever it is. */
static inline int64_t class_in(int64_t class, ptrdiff_t k) { return class >= 0 && class < k ? class : 0; }

static inline ptrdiff_t rows_in_turn(ptrdiff_t k) { return 1 + FEW / k; }

/* How far ahead of a block of rows to fetch the next one, or 0. Of long rows the processor does not fetch it while it
 * works on one. It need not where all may be near already, and must not where a row drives out what is worked on. */
static inline ptrdiff_t bytes_ahead(ptrdiff_t n, ptrdiff_t block, ptrdiff_t row_step) {
    return n * row_step >= 1 << 24 && row_step >= 1 << 10 && row_step <= 1 << 14 ? block * row_step : 0;
}

static inline double from_half(uint16_t h) {
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

static inline double from_bfloat(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static inline double number_at(const char *z, int type) {
    if (type == FLOAT64) return *(const double *)(const void *)z;
    if (type == FLOAT32) return (double)*(const float *)(const void *)z;
    const uint16_t half = *(const uint16_t *)(const void *)z;
    return type == FLOAT16 ? from_half(half) : from_bfloat(half);
}

#define LEVEL 0
#include "kernels.h"
#undef LEVEL

#if defined(__x86_64__)
#define LEVEL 256
#include "kernels.h"
#undef LEVEL
#define LEVEL 512
#include "kernels.h"
#undef LEVEL

static int highest = 512; /* tests lower it */

static int level(void) {
    if (highest >= 512 && __builtin_cpu_supports("avx512f")) return 512;
    return highest >= 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 256 : 0;
}
#define PICK(pass, ...) \
    (level() == 512 ? pass##_512(__VA_ARGS__) : level() == 256 ? pass##_256(__VA_ARGS__) : pass##_any(__VA_ARGS__))
#else
static int highest;
static int level(void) { return 0; }
#define PICK(pass, ...) pass##_any(__VA_ARGS__)
#endif

#define MATRIX const char *z, int type, ptrdiff_t n, ptrdiff_t k, ptrdiff_t row_step, ptrdiff_t step
#define MATRIX_GIVEN z, type, n, k, row_step, step

PUBLIC int calibrant_version(void) { return 8; }

/* The level that runs, of those up to this one. */
PUBLIC int calibrant_level(int up_to) {
    highest = up_to;
    return level();
}

PUBLIC int calibrant_softmax(MATRIX, const int64_t *labels, const int64_t *carried, double *columns, double *range,
                             double *room, int64_t *next) {
    return PICK(softmax, MATRIX_GIVEN, labels, carried, columns, range, room, next);
}

PUBLIC void calibrant_probs(MATRIX, const double *largest, const double *total, double *probs, ptrdiff_t ahead,
                            double *room) {
    PICK(probs, MATRIX_GIVEN, largest, total, probs, ahead, room);
}

PUBLIC void calibrant_temperature(MATRIX, const double *top, const double *label, const double *weights, double beta,
                                  double *sums, double *room, int64_t *next) {
    PICK(temperature, MATRIX_GIVEN, top, label, weights, beta, sums, room, next);
}

PUBLIC double calibrant_vector_fit(MATRIX, const int64_t *labels, const double *weights, const double *weight,
                                   const double *bias, double *by_weight, double *by_bias, double *room) {
    return PICK(vector_fit, MATRIX_GIVEN, labels, weights, weight, bias, by_weight, by_bias, room);
}

PUBLIC double calibrant_residuals(char *scores, int type, ptrdiff_t n, ptrdiff_t k, const int64_t *labels,
                                  const double *weights, double *room) {
    return PICK(residuals, scores, type, n, k, labels, weights, room);
}

PUBLIC void calibrant_class_bins(MATRIX, const double *largest, const double *total, const int64_t *labels,
                                 const double *edges, ptrdiff_t bins, int right, double *counts, double *sums,
                                 double *positives, double *low, double *room) {
    PICK(class_bins, MATRIX_GIVEN, largest, total, labels, edges, bins, right, counts, sums, positives, low, room);
}

PUBLIC void calibrant_score_bins(const double *scores, const uint8_t *outcomes, ptrdiff_t n, const double *edges,
                                 ptrdiff_t bins, int right, double *tables) {
    PICK(score_bins, scores, outcomes, n, edges, bins, right, tables);
}

PUBLIC void calibrant_prefix(const double *values, ptrdiff_t b, ptrdiff_t n, double *sums) {
    PICK(prefix, values, b, n, sums);
}

/* A word of 32 bits as its part of a hash. */
static inline uint64_t mix(uint32_t bits, uint64_t weight) {
    const uint64_t word = bits * 0xBF58476D1CE4E5B9ULL;
    return (word ^ (word >> 32)) * weight;
}

/* One 64-bit number per row, from its label and the differences, as float32, from one to the next of the logits of
 * `count` classes, of the label, and of the first class again. */
PUBLIC void calibrant_hash(MATRIX, const int64_t *labels, const int64_t *classes, ptrdiff_t count, int64_t *hashes) {
    for (ptrdiff_t i = 0; i < n; i++) {
        const char *row = z + i * row_step;
        double last = number_at(row + class_in(classes[0], k) * step, type);
        uint64_t hash = 0, weight = 0x9E3779B97F4A7C15ULL;
        for (ptrdiff_t j = 1; j <= count + 1; j++, weight *= 0xD1342543DE82EF95ULL) {
            const int64_t class = j < count ? classes[j] : j == count ? labels[i] : classes[0];
            const double next = number_at(row + class_in(class, k) * step, type);
            const float off = (float)(next - last) + 0.0f; /* there are two zeros */
            uint32_t bits;
            memcpy(&bits, &off, sizeof bits);
            hash += mix(bits, weight);
            last = next;
        }
        hash += mix((uint32_t)labels[i], weight);
        hash = (hash ^ (hash >> 31)) * 0x94D049BB133111EBULL;
        hashes[i] = (int64_t)(hash ^ (hash >> 29));
    }
}
