/* All templates for one instruction set: double first, since the linear part is always in double. */

#define NAME64(x) JOIN(x, f64, ISA)

#define REAL double
#define IREAL int64_t
#define SQRT sqrt
#define EPSILON DBL_EPSILON
#ifdef MAX64
#define VMAX MAX64
#define VSQRT SQRT64
#endif
#define NAME(x) JOIN(x, f64, ISA)
#include "_tiles.h"
#include "_linear.h"
#include "_rows.h"
#include "_solve.h"
#include "_score.h"
#include "_perceptron.h"
#undef REAL
#undef IREAL
#undef SQRT
#undef EPSILON
#undef VMAX
#undef VSQRT
#undef NAME
#undef VW
#undef vec
#undef ivec
#undef diagonal_tile

#define REAL float
#define IREAL int32_t
#define SQRT sqrtf
#define EPSILON FLT_EPSILON
#ifdef MAX32
#define VMAX MAX32
#define VSQRT SQRT32
#endif
#define NAME(x) JOIN(x, f32, ISA)
#include "_tiles.h"
#include "_rows.h"
#include "_solve.h"
#include "_score.h"
#include "_perceptron.h"
#include "_screen.h"
#undef REAL
#undef IREAL
#undef SQRT
#undef EPSILON
#undef VMAX
#undef VSQRT
#undef NAME
#undef VW
#undef vec
#undef ivec
#undef diagonal_tile
#undef NAME64
