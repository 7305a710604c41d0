/* Out-of-fold predictions of the one-layer SSFN for a chunk of candidates.
 *
 * Included once for each (scalar type, instruction set), after _tiles.h. Per sample the columns are
 * [1 | hidden units | targets], so one Gram product gives everything the output layers of all folds need. */

typedef struct {
    REAL *rows;        /* J x width */
    REAL *weighted;    /* BLOCK_ROWS x width */
    REAL *grams;       /* (stored segments) x width x width */
    REAL *total;       /* width x width */
    REAL *shift;       /* width */
    REAL *lin, *lin_w; /* J x lin_width: relu(+-Y) of every fold; the same, weighted, training rows only */
    REAL *lin_lin;     /* lin_width x lin_width (blocks on the diagonal) */
    REAL *cross;       /* width x lin_width */
    REAL *system;      /* n x system_width */
    REAL *floor;       /* n */
    REAL *solution;    /* Q x system_width */
    double *x, *y, *linear_scratch;
    long lin_width, system_width, n_system, n_params;
    int store_segments;
} NAME(Work);
#define Work NAME(Work)

/* Hidden layer of rows [from, to): relu(scale * (base + x r) + bias) - shift, framed by 1 and the targets. */
static void NAME(fill_rows)(const Task *t, Work *w, long cand, long draw, long from, long to, int shifted)
{
    const Linear *lin = &t->linear;
    const long width = t->width, one = t->intercept, H = t->n_hidden, Q = lin->n_outputs, J = lin->n_rows;
    const long m = t->offsets[cand + 1] - t->offsets[cand];
    const double *x = t->columns + t->offsets[cand] * J;
    const REAL *base = (const REAL *)t->base + cand * t->base_stride + draw * J * width;
    const REAL *slots = (const REAL *)t->slot_weights + draw * t->n_slots * width;
    const REAL *bias = (const REAL *)t->bias + draw * width, *targets = t->targets;
    const REAL scale = t->scale[cand];
    for (long j = from; j < to; j++) {
        REAL *row = w->rows + j * width;
        vec squares = {0};
        for (long c = 0; c < width; c += VW) {
            vec z = *(const vec *)(base + j * width + c);
            for (long a = 0; a < m && a < t->n_slots; a++)
                z += (REAL)x[a * J + j] * *(const vec *)(slots + a * width + c);
            squares += z * z;
            *(vec *)(row + c) = z;
        }
        REAL factor = scale;
        if (t->unit_norm) {
            const REAL norm = SQRT(NAME(lane_sum)(squares));
            factor = norm > 0 ? 1 / norm : 0;
        }
        for (long c = 0; c < width; c += VW) {
            const vec z = factor * *(vec *)(row + c) + *(const vec *)(bias + c);
            *(vec *)(row + c) = NAME(relu)(z) - (shifted ? *(vec *)(w->shift + c) : (vec){0});
        }
        if (one)
            row[0] = 1;
        for (long q = 0; q < Q; q++)
            row[one + H + q] = targets[j * Q + q];
    }
}

/* The intercept makes the model blind to a constant added to a hidden unit. Taking away the unit's mean over
 * the first rows spares the Gram matrix its one huge eigenvalue, which single precision would pay for. */
static void NAME(find_shift)(const Task *t, Work *w, long cand, long draw)
{
    const long width = t->width, n = t->linear.n_rows < BLOCK_ROWS ? t->linear.n_rows : BLOCK_ROWS;
    memset(w->shift, 0, width * sizeof(REAL));
    if (!t->intercept)
        return;
    NAME(fill_rows)(t, w, cand, draw, 0, n, 0);
    for (long j = 0; j < n; j++)
        for (long c = 0; c < width; c += VW)
            *(vec *)(w->shift + c) += *(vec *)(w->rows + j * width + c);
    for (long h = 0; h < width; h++)
        w->shift[h] = h >= 1 && h <= t->n_hidden ? w->shift[h] / n : 0;
}

/* Pointer to the weighted copy of some rows (the rows themselves where all weights are one). */
static const REAL *NAME(weigh)(const Task *t, Work *w, long from, long to)
{
    const REAL *rows = w->rows + from * t->width;
    if (!t->weighted)
        return rows;
    for (long j = from; j < to; j++)
        for (long c = 0; c < t->width; c += VW)
            *(vec *)(w->weighted + (j - from) * t->width + c) =
                (REAL)t->linear.weights[j] * *(const vec *)(rows + (j - from) * t->width + c);
    return w->weighted;
}

/* One pass over the samples: the layer, the Gram matrix of every segment, the products with the linear units. */
static void NAME(accumulate)(const Task *t, Work *w, long cand, long draw)
{
    const Linear *lin = &t->linear;
    const long width = t->width, K = lin->n_folds, area = width * width;
    memset(w->grams, 0, (w->store_segments ? K + 1 : 1) * area * sizeof(REAL));
    memset(w->cross, 0, width * w->lin_width * sizeof(REAL));
    NAME(find_shift)(t, w, cand, draw);
    for (long seg = 0; seg <= K; seg++) {
        REAL *gram = w->grams + (w->store_segments ? seg * area : 0);
        for (long from = lin->segments[seg]; from < lin->segments[seg + 1]; from += BLOCK_ROWS) {
            const long end = lin->segments[seg + 1], to = from + BLOCK_ROWS < end ? from + BLOCK_ROWS : end;
            NAME(fill_rows)(t, w, cand, draw, from, to, 1);
            const REAL *rows = w->rows + from * width;
            NAME(gram_add)(rows, NAME(weigh)(t, w, from, to), width, to - from, width, gram, width);
            NAME(cross_add)(rows, width, width, w->lin_w + from * w->lin_width, w->lin_width, w->lin_width,
                            to - from, w->cross, w->lin_width);
        }
    }
    memcpy(w->total, w->grams, area * sizeof(REAL));
    if (w->store_segments)
        for (long seg = 1; seg <= K; seg++)
            for (long i = 0; i < area; i += VW)
                *(vec *)(w->total + i) += *(vec *)(w->grams + seg * area + i);
}

/* relu(+-Y) of every fold for all rows, and their products with each other within a fold. */
static void NAME(linear_units)(const Task *t, Work *w, long cand)
{
    const Linear *lin = &t->linear;
    const long J = lin->n_rows, K = lin->n_folds, Q = lin->n_outputs, width = w->lin_width;
    if (!t->use_linear)
        return;
    NAME64(linear_predictions)(lin, t->columns + t->offsets[cand] * J, t->offsets[cand + 1] - t->offsets[cand],
                               w->linear_scratch, w->y);
    for (long fold = 0; fold < K; fold++)
        for (long q = 0; q < Q; q++) {
            const double *y = w->y + (fold * Q + q) * J;
            const long plus = fold * 2 * Q + q, minus = plus + Q;
            for (long j = 0; j < J; j++) {
                const int trains = j < lin->segments[fold + 1] || j >= lin->segments[fold + 2];
                const REAL weight = trains ? lin->weights[j] : 0;
                const REAL up = y[j] > 0 ? y[j] : 0, down = y[j] < 0 ? -y[j] : 0;
                w->lin[j * width + plus] = up;
                w->lin[j * width + minus] = down;
                w->lin_w[j * width + plus] = weight * up;
                w->lin_w[j * width + minus] = weight * down;
            }
        }
    memset(w->lin_lin, 0, width * width * sizeof(REAL));
    for (long from = 0; from < J; from += BLOCK_ROWS) {
        const long rows = from + BLOCK_ROWS < J ? BLOCK_ROWS : J - from;
        for (long r = 0; r < K * 2 * Q; r += VW) {
            /* Upper tiles, as far right as the last fold that this row of tiles touches. */
            const long fold = (r + VW - 1) / (2 * Q), end = (fold < K ? fold + 1 : K) * 2 * Q;
            for (long c = r; c < end; c += VW)
                NAME(tile)(w->lin + from * width + r, width, w->lin_w + from * width + c, width, rows,
                           w->lin_lin + r * width + c, width, 1);
        }
    }
}

/* Normal equations of one fold, columns [1 | hidden | linear units | targets], upper triangle. */
static void NAME(assemble)(const Task *t, Work *w, long fold, double ridge)
{
    const Linear *lin = &t->linear;
    const long width = t->width, area = width * width, own = t->intercept + t->n_hidden;
    const long Q = lin->n_outputs, n_lin = t->use_linear ? 2 * Q : 0, first = fold * 2 * Q;
    const REAL *seg = w->grams + (w->store_segments ? fold + 1 : 1) * area;
    for (long i = 0; i < own; i++) {
        REAL *row = w->system + i * w->system_width;
        for (long c = i / VW * VW; c < width; c += VW)
            *(vec *)(row + c) = *(vec *)(w->total + i * width + c) - *(const vec *)(seg + i * width + c);
        for (long q = 0; q < Q; q++)
            row[own + n_lin + q] = w->total[i * width + own + q] - seg[i * width + own + q];
        for (long a = 0; a < n_lin; a++)
            row[own + a] = w->cross[i * w->lin_width + first + a];
        for (long c = own + n_lin + Q; c < w->system_width; c++)
            row[c] = 0;
    }
    for (long a = 0; a < n_lin; a++) {
        REAL *row = w->system + (own + a) * w->system_width;
        memset(row, 0, w->system_width * sizeof(REAL));
        for (long b = a; b < n_lin; b++)
            row[own + b] = w->lin_lin[(first + a) * w->lin_width + first + b];
        for (long q = 0; q < Q; q++)
            row[own + n_lin + q] = w->cross[(own + q) * w->lin_width + first + a];
    }
    for (long i = 0; i < w->n_params; i++) {
        REAL *pivot = w->system + i * w->system_width + i;
        if (i >= t->intercept)
            *pivot += ridge;
        w->floor[i] = 4 * EPSILON * *pivot;
    }
}

/* Where each fold's Gram matrix isn't kept (many folds), it is summed again when its turn comes. */
static void NAME(fold_gram)(const Task *t, Work *w, long fold)
{
    const long area = t->width * t->width, end = t->linear.segments[fold + 2];
    if (w->store_segments)
        return;
    REAL *gram = w->grams + area;
    memset(gram, 0, area * sizeof(REAL));
    for (long from = t->linear.segments[fold + 1]; from < end; from += BLOCK_ROWS) {
        const long to = from + BLOCK_ROWS < end ? from + BLOCK_ROWS : end;
        NAME(gram_add)(w->rows + from * t->width, NAME(weigh)(t, w, from, to), t->width, to - from, t->width,
                       gram, t->width);
    }
}

/* Squared norms of the penalised weights O, and of U^-T O, from which Newton's step follows. */
static void NAME(norms)(const Task *t, Work *w, double *norm, double *curvature)
{
    const long n = w->n_params, ld = w->system_width;
    REAL *q = w->solution + t->linear.n_outputs * ld;
    *norm = *curvature = 0;
    for (long output = 0; output < t->linear.n_outputs; output++) {
        const REAL *o = w->solution + output * ld;
        for (long i = 0; i < n; i++) {
            q[i] = i < t->intercept ? 0 : o[i];
            *norm += (double)q[i] * q[i];
        }
        for (long i = 0; i < n; i++) {
            q[i] /= w->system[i * ld + i];
            *curvature += (double)q[i] * q[i];
            for (long c = i + 1; c < n; c++)
                q[c] -= w->system[i * ld + c] * q[i];
        }
    }
}

/* Output weights of one fold: ridge, and where the norm bound is violated the ridge that meets it exactly
 * (Newton on 1/|O(lambda)| = 1/bound, monotone from below, as in trust-region methods). */
static void NAME(solve_fold)(const Task *t, Work *w, long fold)
{
    const long n = w->n_params, ld = w->system_width, padded = (n + VW - 1) / VW * VW;
    double lambda = t->ridge;
    NAME(fold_gram)(t, w, fold);
    for (int attempt = 0; attempt < 100; attempt++) {
        NAME(assemble)(t, w, fold, lambda);
        if (!NAME(cholesky)(w->system, n, ld, w->floor)) {
            double trace = 0; /* the smallest ridge that this precision can factor */
            for (long i = t->intercept; i < n; i++)
                trace += w->floor[i] / n;
            lambda = lambda > trace ? 4 * lambda : 4 * trace + 1e-30;
            continue;
        }
        for (long q = 0; q < t->linear.n_outputs; q++)
            NAME(back_substitute)(w->system, n, ld, n + q, w->solution + q * ld, padded);
        if (!(t->norm_bound > 0))
            return;
        double norm, curvature;
        NAME(norms)(t, w, &norm, &curvature);
        const double excess = (sqrt(norm) - t->norm_bound) / t->norm_bound;
        if (excess <= 8 * EPSILON)
            return;
        lambda += norm / curvature * excess;
    }
}

/* Adds the predictions of the fold's own rows, which its output weights have never seen. */
static void NAME(predict_fold)(const Task *t, Work *w, long fold, REAL *out)
{
    const long width = t->width, own = t->intercept + t->n_hidden, Q = t->linear.n_outputs;
    const long first = fold * 2 * Q, n_lin = t->use_linear ? 2 * Q : 0;
    for (long q = 0; q < Q; q++) {
        REAL *o = w->solution + q * w->system_width, lin_weights[n_lin + 1];
        memcpy(lin_weights, o + own, n_lin * sizeof(REAL));
        memset(o + own, 0, (w->system_width - own) * sizeof(REAL));
        for (long j = t->linear.segments[fold + 1]; j < t->linear.segments[fold + 2]; j++) {
            vec acc = {0};
            for (long c = 0; c < width; c += VW)
                acc += *(vec *)(w->rows + j * width + c) * *(vec *)(o + c);
            REAL sum = NAME(lane_sum)(acc);
            for (long a = 0; a < n_lin; a++)
                sum += w->lin[j * w->lin_width + first + a] * lin_weights[a];
            out[j * Q + q] += sum / t->n_draws;
        }
    }
}

/* Lays all buffers out in one allocation; returns its bytes when memory is NULL. */
static size_t NAME(lay_out)(const Task *t, Work *w, char *memory)
{
    const Linear *lin = &t->linear;
    const long J = lin->n_rows, K = lin->n_folds, Q = lin->n_outputs, width = t->width;
    long m = 0;
    for (long c = 0; c < t->n_candidates; c++)
        if (t->offsets[c + 1] - t->offsets[c] > m)
            m = t->offsets[c + 1] - t->offsets[c];
    w->lin_width = t->use_linear ? (K * 2 * Q + VW - 1) / VW * VW : 0;
    w->n_params = t->intercept + t->n_hidden + (t->use_linear ? 2 * Q : 0);
    w->system_width = (w->n_params + Q + VW - 1) / VW * VW;
    w->store_segments = (double)(K + 1) * width * width * sizeof(REAL) < (1 << 21);
    size_t bytes = 0;
#define TAKE(field, count)                                        \
    do {                                                          \
        w->field = (void *)(memory + bytes);                      \
        bytes += ((size_t)(count) * sizeof(*w->field) + 63) / 64 * 64; \
    } while (0)
    TAKE(rows, J * width);
    TAKE(weighted, BLOCK_ROWS * width);
    TAKE(grams, (w->store_segments ? K + 1 : 2) * width * width);
    TAKE(total, width * width);
    TAKE(shift, width);
    TAKE(lin, J * w->lin_width);
    TAKE(lin_w, J * w->lin_width);
    TAKE(lin_lin, w->lin_width * w->lin_width);
    TAKE(cross, width * w->lin_width);
    TAKE(system, (w->n_params + VW) * w->system_width);
    TAKE(floor, w->n_params);
    TAKE(solution, (Q + 1) * w->system_width);
    TAKE(y, t->use_linear ? K * Q * J : 0);
    TAKE(linear_scratch, t->use_linear ? NAME64(linear_scratch)(lin, m) : 0);
#undef TAKE
    return bytes;
}

static int NAME(score)(const Task *t)
{
    Work w;
    const size_t bytes = NAME(lay_out)(t, &w, NULL) + 64;
    char *memory = malloc(bytes);
    if (!memory)
        return 0;
    memset(memory, 0, bytes);
    NAME(lay_out)(t, &w, memory + (64 - (uintptr_t)memory % 64) % 64);
    const long J = t->linear.n_rows, Q = t->linear.n_outputs;
    for (long cand = 0; cand < t->n_candidates; cand++) {
        REAL *out = (REAL *)t->out + cand * J * Q;
        memset(out, 0, J * Q * sizeof(REAL));
        NAME(linear_units)(t, &w, cand);
        for (long draw = 0; draw < t->n_draws; draw++) {
            NAME(accumulate)(t, &w, cand, draw);
            for (long fold = 0; fold < t->linear.n_folds; fold++) {
                NAME(solve_fold)(t, &w, fold);
                NAME(predict_fold)(t, &w, fold, out);
            }
        }
    }
    free(memory);
    return 1;
}
#undef Work
