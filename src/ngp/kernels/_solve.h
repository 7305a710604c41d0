/* The output layer of each fold: its normal equations, their solution, the predictions of the fold's own rows.
 *
 * Included once for each (scalar type, instruction set), after _rows.h. */

/* Entry of the total Gram matrix in a column of linear units. */
static inline REAL NAME(lin_entry)(const Work *w, long r, long c)
{
    return c < w->seg_width ? w->total[r * w->seg_width + c]
                            : w->lin_gram[r * (w->row_width - w->seg_width) + c - w->seg_width];
}

/* Normal equations of one fold, columns [hidden | 1 | linear units | targets], upper triangle. */
static void NAME(assemble)(const Task *t, Work *w, long fold, double ridge)
{
    const long ld = w->sys_width, seg = w->seg_width, Q = t->linear.n_outputs, own = w->target;
    const long lin = w->lin + fold * w->n_lin;
    const REAL *part = w->grams + (w->store_segments ? fold + 1 : 1) * seg * seg;
    for (long i = 0; i < own; i++) {
        REAL *row = w->system + i * ld;
        for (long c = i / VW * VW; c < own; c += VW)
            *(vec *)(row + c) = *(vec *)(w->total + i * seg + c) - *(const vec *)(part + i * seg + c);
        for (long a = 0; a < w->n_lin; a++)
            row[own + a] = NAME(lin_entry)(w, i, lin + a);
        for (long q = 0; q < Q; q++)
            row[own + w->n_lin + q] = w->total[i * seg + own + q] - part[i * seg + own + q];
        for (long c = w->n_params + Q; c < ld; c++)
            row[c] = 0;
    }
    for (long a = 0; a < w->n_lin; a++) {
        REAL *row = w->system + (own + a) * ld;
        memset(row, 0, ld * sizeof(REAL));
        for (long b = a; b < w->n_lin; b++)
            row[own + b] = NAME(lin_entry)(w, lin + a, lin + b);
        for (long q = 0; q < Q; q++)
            row[own + w->n_lin + q] = NAME(lin_entry)(w, own + q, lin + a);
    }
    for (long i = 0; i < w->n_params; i++) {
        REAL *pivot = w->system + i * ld + i;
        /* What is left of total minus part is no better than the rounding of the total. */
        w->floor[i] = 8 * EPSILON * (i < own ? w->total[i * seg + i] : *pivot);
        if (!t->linear.intercept || i != w->one)
            *pivot += ridge;
    }
}

/* Output weights of one fold; where rounding made the matrix indefinite, with the smallest ridge that will do, about. */
static APART void NAME(solve_fold)(const Task *t, Work *w, long fold)
{
    const long n = w->n_params, ld = w->sys_width, Q = t->linear.n_outputs;
    REAL *solution = w->solution + fold * Q * ld;
    double lambda = t->ridge;
    for (int attempt = 0; attempt < 100; attempt++) {
        NAME(assemble)(t, w, fold, lambda);
        if (NAME(cholesky)(w->system, n, ld, w->floor)) {
            for (long q = 0; q < Q; q++)
                NAME(back_substitute)(w->system, n, ld, n + q, solution + q * ld);
            return;
        }
        double smallest = 0;
        for (long i = 0; i < n; i++)
            smallest += w->floor[i];
        lambda = lambda > smallest / n ? 4 * lambda : 4 * smallest / n + 1e-30;
    }
}

/* The most common case of `predict_rows`, without a detour through the block: the shift has become a constant. */
static void NAME(predict_single)(const Task *t, Work *w, long cand, long draw, long fold, long from, long to)
{
    const long J = t->linear.n_rows, width = t->base_width, n_lin = w->n_lin;
    const double *x = t->columns + cand * J;
    const REAL *base = (const REAL *)t->base + draw * J * width;
    const REAL *slots = (const REAL *)t->slot_weights + draw * width;
    const REAL *o = w->solution + fold * w->sys_width, *lin_o = w->lin_solution + fold * n_lin;
    const REAL share = (REAL)1 / t->n_draws;
    REAL *out = (REAL *)t->out + cand * J, weights[width], constant = t->linear.intercept ? o[w->one] : 0;
    for (long h = 0; h < width; h++) {
        weights[h] = h < t->n_hidden ? o[h] : 0;
        constant -= w->shift[h] * weights[h];
    }
    for (long j = from; j < to; j++) {
        const REAL value = x[j];
        vec acc = {0};
        for (long c = 0; c < width; c += VW)
            acc += NAME(relu)(*(const vec *)(base + j * width + c) + value * *(const vec *)(slots + c))
                 * *(const vec *)(weights + c);
        REAL sum = constant + NAME(lane_sum)(acc);
        for (long a = 0; a < n_lin; a++)
            sum += w->own_lin[j * n_lin + a] * lin_o[a];
        out[j] += share * sum;
    }
}

/* Adds `n` outputs of one row, from q on. Side by side, they read its hidden units once. */
static inline __attribute__((always_inline)) void NAME(predict_outputs)(
    const Task *t, const Work *w, long fold, long q, const REAL *row, const REAL *lin, REAL *out, const int n)
{
    const long width = w->sys_width, lin_width = w->lin_width, first = fold * t->linear.n_outputs + q;
    const REAL *o = w->solution + first * width, *lin_o = w->lin_solution + first * lin_width;
    const REAL share = (REAL)1 / t->n_draws;
    vec acc[5] = {{0}};
    for (long c = 0; c < w->target; c += VW) {
        const vec units = *(const vec *)(row + c);
        for (int i = 0; i < n; i++)
            acc[i] += units * *(const vec *)(o + i * width + c);
    }
    for (long a = 0; a < lin_width; a += VW)
        for (int i = 0; i < n; i++)
            acc[i] += *(const vec *)(lin + a) * *(const vec *)(lin_o + i * lin_width + a);
    for (int i = 0; i < n; i++)
        out[q + i] += share * NAME(lane_sum)(acc[i]);
}

/* Adds the predictions of some of the fold's own rows, which its output weights have never seen. */
static void NAME(predict_rows)(const Task *t, Work *w, long cand, long draw, long fold, long from, long to)
{
    const long Q = t->linear.n_outputs;
    REAL *out = (REAL *)t->out + cand * t->linear.n_rows * Q;
    if (NAME(is_single)(t)) {
        NAME(predict_single)(t, w, cand, draw, fold, from, to);
        return;
    }
    NAME(fill)(t, w, cand, draw, from, to);
    for (long j = from; j < to; j++) {
        const REAL *row = w->block + (j - from) * w->row_width, *lin = w->own_lin + j * w->lin_width;
        long q = 0;
        for (; q + 5 <= Q; q += 5)
            NAME(predict_outputs)(t, w, fold, q, row, lin, out + j * Q, 5);
        for (; q < Q; q++)
            NAME(predict_outputs)(t, w, fold, q, row, lin, out + j * Q, 1);
    }
}

/* Sets the weights of the linear units apart: what stands in their place in a row belongs to other columns. */
static void NAME(split_solution)(const Task *t, Work *w, long fold)
{
    for (long q = 0; q < t->linear.n_outputs; q++) {
        const long i = fold * t->linear.n_outputs + q;
        REAL *o = w->solution + i * w->sys_width;
        memcpy(w->lin_solution + i * w->lin_width, o + w->target, w->n_lin * sizeof(REAL));
        memset(o + w->target, 0, (w->sys_width - w->target) * sizeof(REAL));
    }
}
