/* AVX-512 on processors without it: SIMDe's functions (Debian: libsimde-dev), and those that it lacks. */

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

static inline __attribute__((always_inline)) __m512d widen_floats(__m256 v) {
    union { __m256d half[2]; __m512d all; } x;
    x.half[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(v)), x.half[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
    return x.all;
}

static inline __attribute__((always_inline)) __m512d load_some(__mmask8 kept, const double *from) {
    union { double one[8]; __m512d all; } x;
    for (int i = 0; i < 8; i++) x.one[i] = kept >> i & 1 ? from[i] : 0.0;
    return x.all;
}

#undef _mm512_cvtps_pd
#undef _mm512_maskz_loadu_pd
#define _mm512_cvtps_pd(v) widen_floats(v)
#define _mm512_maskz_loadu_pd(kept, from) load_some(kept, from)
