/* How much of some residuals a few random units of a candidate explain: the cheap pass before the exact one.
 *
 * A candidate's row of a sample is relu(base + x r) + x e + shift, where r and e are the weights and the places of its
 * columns x, so that units, the columns themselves, the intercept and the residuals come out side by side (see
 * ngp.kernels.screening). One Gram product and one Cholesky factorisation of it give the ridge regression's gain.
 *
 * Included once for each instruction set, in single precision: a ranking needs no more. */

/* Rows [from, to) of a candidate into the block. */
static inline void NAME(screen_rows)(const Screen *t, const REAL *x, long from, long to, REAL *block)
{
    const long width = t->width, J = t->n_rows;
    for (long j = from; j < to; j++)
        for (long c = 0; c < width; c += VW) {
            vec z = *(const vec *)((const REAL *)t->base + j * width + c);
            vec row = *(const vec *)((const REAL *)t->shift + j * width + c);
            for (long a = 0; a < t->n_new; a++) {
                z += x[a * J + j] * *(const vec *)((const REAL *)t->slot_weights + a * width + c);
                row += x[a * J + j] * *(const vec *)((const REAL *)t->places + a * width + c);
            }
            *(vec *)(block + (j - from) * width + c) = row + NAME(relu)(z);
        }
}

/* Sum over the residuals of what the regression takes from their squares: |U^-T b|^2 in Cholesky's terms. */
static double NAME(gain)(const Screen *t, REAL *gram, const REAL *floor)
{
    double gain = 0;
    for (long i = 0; i < t->n_params; i++)
        gram[i * t->width + i] += ((const REAL *)t->ridge)[i];
    if (!NAME(cholesky)(gram, t->n_params, t->width, floor))
        return 0; /* no positive definite matrix in this precision: nothing that could be relied on */
    for (long i = 0; i < t->n_params; i++)
        for (long q = t->n_params; q < t->n_params + t->n_outputs; q++)
            gain += (double)gram[i * t->width + q] * gram[i * t->width + q];
    return gain;
}

/* Candidates go together through the blocks of rows, so that they share these while they are in the cache. */
static int NAME(screen)(const Screen *t)
{
    const long width = t->width, area = width * width, J = t->n_rows;
    const size_t numbers = BLOCK_ROWS * width + SCREENED * area + t->n_params;
    char *memory = calloc(numbers * sizeof(REAL) + 64, 1);
    if (!memory)
        return 0;
    REAL *block = (REAL *)(memory + (64 - (uintptr_t)memory % 64) % 64), *grams = block + BLOCK_ROWS * width;
    const REAL *floor = grams + SCREENED * area;
    for (long first = 0; first < t->n_candidates; first += SCREENED) {
        const long n = MIN(SCREENED, t->n_candidates - first);
        memset(grams, 0, n * area * sizeof(REAL));
        for (long from = 0; from < J; from += BLOCK_ROWS) {
            const long to = MIN(from + BLOCK_ROWS, J);
            for (long i = 0; i < n; i++) {
                NAME(screen_rows)(t, (const REAL *)t->columns + (first + i) * t->n_new * J, from, to, block);
                NAME(gram_add)(block, block, width, to - from, width, grams + i * area, width);
            }
        }
        for (long i = 0; i < n; i++)
            t->out[first + i] = NAME(gain)(t, grams + i * area, floor);
    }
    free(memory);
    return 1;
}
