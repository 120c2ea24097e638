/* See cpu.h. */
#include "sys/cpu.h"
#include <stdatomic.h>

static atomic_uint limit = ~0u;

static unsigned detect(void)
{
    unsigned found = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        found |= SQ_CPU_SSE42;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        found |= SQ_CPU_AVX2;
    if ((found & SQ_CPU_AVX2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("gfni"))
        found |= SQ_CPU_AVX512;
#endif
    return found;
}

unsigned sq_cpu_features(void)
{
    return detect() & atomic_load_explicit(&limit, memory_order_relaxed);
}

void sq_cpu_limit(unsigned features)
{
    atomic_store(&limit, features);
}
