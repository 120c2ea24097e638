/* Which instructions this processor has; kernels choose a variant by it, tests switch features off. */
#ifndef SQ_SYS_CPU_H
#define SQ_SYS_CPU_H

#include <stdbool.h>

enum sq_cpu_feature {
    SQ_CPU_SSE42 = 1,
    SQ_CPU_AVX2 = 2,   /* with FMA, F16C and BMI2 */
    SQ_CPU_AVX512 = 4, /* F, BW, DQ, VL, VBMI, VBMI2, with GFNI */
};

unsigned sq_cpu_features(void); /* a set of enum sq_cpu_feature */
/* Tests: as if the processor had only these too. ~0u: all it has. */
void sq_cpu_limit(unsigned features);

#endif
