/* Register tiles, the Gram product and the Cholesky factorisation built from them.
 *
 * Included once for each (scalar type, instruction set): REAL is the scalar type, VBYTES the width of
 * a vector register, and NAME(x) gives every symbol its own name. VW, the number of scalars in a
 * vector, is also the side of the square tiles, so every padded width is a multiple of VW. */

#define VW ((int)(VBYTES / sizeof(REAL)))
#define vec NAME(vec)
#define ivec NAME(ivec)

/* The unaligned, aliasing vector type serves caller's arrays and our own buffers alike. */
typedef REAL vec __attribute__((vector_size(VBYTES), aligned(sizeof(REAL)), may_alias));
typedef IREAL ivec __attribute__((vector_size(VBYTES), aligned(sizeof(REAL)), may_alias));

static inline vec NAME(relu)(vec z)
{
#ifdef VMAX
    return VMAX((vec){0}, z); /* one instruction, which the compiler doesn't find by itself; a NaN stays one */
#else
    return (vec)((ivec)z & ~(z < (vec){0}));
#endif
}

/* Sum of the lanes, halving the vector down to 16 bytes: the same order of additions for every call. */
static inline REAL NAME(lane_sum)(vec v)
{
    typedef REAL quarter __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));
    union {
        vec whole;
        quarter parts[VBYTES / 16];
    } u = {v};
#if VBYTES == 64
    u.parts[0] = (u.parts[0] + u.parts[2]) + (u.parts[1] + u.parts[3]);
#elif VBYTES == 32
    u.parts[0] = u.parts[0] + u.parts[1];
#endif
    const quarter q = u.parts[0];
    return sizeof(REAL) == 8 ? q[0] + q[1] : (q[0] + q[2 % (16 / sizeof(REAL))]) + (q[1] + q[3 % (16 / sizeof(REAL))]);
}

/* C[r, :] += sign * sum_j P[j, r] * V[j, :] for r = 0 .. VW-1, one vector of columns. */
static inline __attribute__((always_inline)) void NAME(tile)(
    const REAL *P, long ldp, const REAL *V, long ldv, long rows, REAL *C, long ldc, const int sign)
{
    vec acc[VW];
    for (int r = 0; r < VW; r++)
        acc[r] = (vec){0};
    for (long j = 0; j < rows; j++) {
        const vec v = *(const vec *)(V + j * ldv);
        const REAL *p = P + j * ldp;
#pragma GCC unroll 16
        for (int r = 0; r < VW; r++)
            acc[r] += p[r] * v;
    }
    for (int r = 0; r < VW; r++) {
        vec *c = (vec *)(C + r * ldc);
        *c = sign > 0 ? *c + acc[r] : *c - acc[r];
    }
}

#if VBYTES == 64
/* The same for a tile on the diagonal: below its middle only the right half of the vector is wanted. */
typedef REAL NAME(hvec) __attribute__((vector_size(VBYTES / 2), aligned(sizeof(REAL)), may_alias));
static inline __attribute__((always_inline)) void NAME(diagonal_tile)(
    const REAL *P, long ldp, const REAL *V, long ldv, long rows, REAL *C, long ldc, const int sign)
{
    vec upper[VW / 2];
    NAME(hvec) lower[VW / 2];
    for (int r = 0; r < VW / 2; r++) {
        upper[r] = (vec){0};
        lower[r] = (NAME(hvec)){0};
    }
    for (long j = 0; j < rows; j++) {
        const vec v = *(const vec *)(V + j * ldv);
        const NAME(hvec) half = *(const NAME(hvec) *)(V + j * ldv + VW / 2);
        const REAL *p = P + j * ldp;
#pragma GCC unroll 16
        for (int r = 0; r < VW / 2; r++) {
            upper[r] += p[r] * v;
            lower[r] += p[r + VW / 2] * half;
        }
    }
    for (int r = 0; r < VW / 2; r++) {
        vec *top = (vec *)(C + r * ldc);
        NAME(hvec) *bottom = (NAME(hvec) *)(C + (r + VW / 2) * ldc + VW / 2);
        *top = sign > 0 ? *top + upper[r] : *top - upper[r];
        *bottom = sign > 0 ? *bottom + lower[r] : *bottom - lower[r];
    }
}
#else
#define diagonal_tile tile
#endif

/* Upper triangle of C += P^T V (or -= for sign < 0), where P^T V is known to be symmetric. */
static inline __attribute__((always_inline)) void NAME(gram)(
    const REAL *P, const REAL *V, long ld, long rows, long width, REAL *C, long ldc, const int sign)
{
    for (long c = 0; c < width; c += VW) {
        for (long r = 0; r < c; r += VW)
            NAME(tile)(P + r, ld, V + c, ld, rows, C + r * ldc + c, ldc, sign);
        NAME(diagonal_tile)(P + c, ld, V + c, ld, rows, C + c * ldc + c, ldc, sign);
    }
}

static void NAME(gram_add)(const REAL *P, const REAL *V, long ld, long rows, long width, REAL *C, long ldc)
{
    NAME(gram)(P, V, ld, rows, width, C, ldc, 1);
}

/* Rectangular C (heights x width) += P^T V. */
static __attribute__((unused)) void NAME(cross_add)(const REAL *P, long ldp, long height, const REAL *V, long ldv, long width,
                            long rows, REAL *C, long ldc)
{
    for (long c = 0; c < width; c += VW)
        for (long r = 0; r < height; r += VW)
            NAME(tile)(P + r, ldp, V + c, ldv, rows, C + r * ldc + c, ldc, 1);
}

/* Upper Cholesky factor, in place, of the leading n x n block of S (row-major, ld wide); the columns
 * from n on are right-hand sides and become U^-T times themselves. Pivots below `floor[i]` mean that the
 * matrix is not positive definite in this precision: returns 0. */
static int NAME(cholesky)(REAL *S, long n, long ld, const REAL *floor)
{
    for (long block = 0; block < n; block += VW) {
        const long end = block + VW < n ? block + VW : n;
        for (long i = block; i < end; i++) {
            REAL *row = S + i * ld;
            for (long c = block; c < ld; c += VW) {
                vec acc = *(vec *)(row + c);
                for (long p = block; p < i; p++)
                    acc -= S[p * ld + i] * *(vec *)(S + p * ld + c);
                *(vec *)(row + c) = acc;
            }
            if (!(row[i] > floor[i]))
                return 0;
            const REAL inverse = 1 / SQRT(row[i]);
            for (long c = block; c < ld; c += VW)
                *(vec *)(row + c) *= inverse;
        }
        /* Right-looking update of what is left; the last block has nothing below it. */
        if (end < n) {
            const REAL *panel = S + block * ld;
            for (long c = end; c < ld; c += VW)
                for (long r = end; r < n && r <= c; r += VW)
                    if (r < c)
                        NAME(tile)(panel + r, ld, panel + c, ld, VW, S + r * ld + c, ld, -1);
                    else
                        NAME(diagonal_tile)(panel + r, ld, panel + c, ld, VW, S + r * ld + c, ld, -1);
        }
    }
    return 1;
}

/* U x = y for one right-hand side, which stands in column `rhs` of the factored S. A block of VW rows at a time:
 * first what the solved part takes away, row by row and free of each other, then the triangle. */
static void NAME(back_substitute)(const REAL *S, long n, long ld, long rhs, REAL *x)
{
    const long padded = (n + VW - 1) / VW * VW;
    for (long i = n; i < padded; i++)
        x[i] = 0;
    for (long block = padded - VW; block >= 0; block -= VW) {
        const long end = block + VW < n ? block + VW : n;
        for (long i = block; i < end; i++) {
            vec acc = {0};
            for (long c = block + VW; c < padded; c += VW)
                acc += *(const vec *)(S + i * ld + c) * *(const vec *)(x + c);
            x[i] = S[i * ld + rhs] - NAME(lane_sum)(acc);
        }
        for (long i = end - 1; i >= block; i--) {
            x[i] /= S[i * ld + i];
            for (long r = block; r < i; r++)
                x[r] -= S[r * ld + i] * x[i];
        }
    }
}

/* The same for `count` right-hand sides side by side, from column `rhs` on: x is n x width, padded. The rows' sums go
 * into four vectors, so that one addition doesn't wait for the other. */
static void NAME(back_substitute_all)(const REAL *S, long n, long ld, long rhs, long count, REAL *x, long width)
{
    for (long q = 0; q < count; q += VW)
        for (long i = n - 1; i >= 0; i--) {
            const REAL *row = S + i * ld;
            vec acc[4] = {*(const vec *)(row + rhs + q), {0}, {0}, {0}};
            long c = i + 1;
            for (; c + 4 <= n; c += 4)
                for (int part = 0; part < 4; part++)
                    acc[part] -= row[c + part] * *(const vec *)(x + (c + part) * width + q);
            for (; c < n; c++)
                acc[0] -= row[c] * *(const vec *)(x + c * width + q);
            *(vec *)(x + i * width + q) = ((acc[0] + acc[1]) + (acc[2] + acc[3])) / row[i];
        }
}
