/* The output layer of each fold: its normal equations, their solution, the predictions of the fold's own rows.
 *
 * Included once for each (scalar type, instruction set), after _rows.h. */

/* Copies `n` entries of a row of the total Gram matrix, from a column of linear units on. */
static inline void NAME(copy_entries)(const Work *w, long r, long first, long n, REAL *to)
{
    const long apart = MAX(0, MIN(n, w->seg_width - first)), ld = w->row_width - w->seg_width;
    for (long c = 0; c < apart; c++)
        to[c] = w->total[r * w->seg_width + first + c];
    for (long c = apart; c < n; c++)
        to[c] = w->lin_gram[r * ld + first + c - w->seg_width];
}

/* Normal equations of one fold, columns [hidden | 1 | linear units | targets], upper triangle. */
static void NAME(assemble)(const Task *t, Work *w, long fold)
{
    const long ld = w->sys_width, seg = w->seg_width, Q = t->linear.n_outputs, own = w->target;
    const long lin = w->lin + fold * w->n_lin;
    const REAL *part = w->grams + (w->store_segments ? fold + 1 : 1) * seg * seg;
    for (long i = 0; i < own; i++) {
        REAL *row = w->system + i * ld;
        for (long c = i / VW * VW; c < own; c += VW)
            *(vec *)(row + c) = *(vec *)(w->total + i * seg + c) - *(const vec *)(part + i * seg + c);
        NAME(copy_entries)(w, i, lin, w->n_lin, row + own);
        for (long q = 0; q < Q; q++)
            row[own + w->n_lin + q] = w->total[i * seg + own + q] - part[i * seg + own + q];
        for (long c = w->n_params + Q; c < ld; c++)
            row[c] = 0;
    }
    for (long a = 0; a < w->n_lin; a++) {
        REAL *row = w->system + (own + a) * ld;
        memset(row, 0, ld * sizeof(REAL));
        NAME(copy_entries)(w, lin + a, lin + a, w->n_lin - a, row + own + a);
        for (long q = 0; q < Q; q++)
            NAME(copy_entries)(w, own + q, lin + a, 1, row + own + w->n_lin + q);
    }
    for (long i = 0; i < w->n_params; i++) {
        REAL *pivot = w->system + i * ld + i;
        /* What is left of total minus part is no better than the rounding of the total. */
        w->floor[i] = 8 * EPSILON * (i < own ? w->total[i * seg + i] : *pivot);
        if (!t->linear.intercept || i != w->one)
            *pivot += t->ridge;
    }
}

/* Output weights of one fold; NaN where the ridge is so small that rounding made the matrix indefinite. */
static APART void NAME(solve_fold)(const Task *t, Work *w, long fold)
{
    const long n = w->n_params, ld = w->sys_width, Q = t->linear.n_outputs;
    REAL *solution = w->solution + fold * w->solution_size;
    NAME(assemble)(t, w, fold);
    if (!NAME(cholesky)(w->system, n, ld, w->floor))
        for (long i = 0; i < w->solution_size; i++)
            solution[i] = NAN;
    else if (Q > 1)
        NAME(back_substitute_all)(w->system, n, ld, n, Q, solution, w->out_width);
    else
        NAME(back_substitute)(w->system, n, ld, n, solution);
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

/* Adds products of parameters [0, n_params) of n rows, `ld` wide, with the weights o of all outputs. */
static inline __attribute__((always_inline)) const REAL *NAME(add_outputs)(
    const REAL *rows, long ld, const REAL *o, long width, long n_params, vec *acc, const int n)
{
    const REAL *second = rows + n / 2 * ld; /* two pointers and few offsets instead of a pointer for each row */
    for (long c = 0; c < n_params; c++, o += width)
        for (int i = 0; i < (n + 1) / 2; i++) {
            acc[i] += rows[i * ld + c] * *(const vec *)o;
            if (n > 1)
                acc[n / 2 + i] += second[i * ld + c] * *(const vec *)o;
        }
    return o;
}

/* Adds the outputs of n rows. Side by side, they read the weights once. */
static inline __attribute__((always_inline)) void NAME(predict_outputs)(
    const Task *t, const Work *w, const REAL *solution, const REAL *rows, const REAL *lin, REAL *out, const int n)
{
    const long Q = t->linear.n_outputs, width = w->out_width;
    const REAL share = (REAL)1 / t->n_draws;
    for (long first = 0; first < Q; first += VW) {
        vec acc[8] = {{0}};
        const REAL *o = NAME(add_outputs)(rows, w->row_width, solution + first, width, w->target, acc, n);
        NAME(add_outputs)(lin, w->lin_width, o, width, w->n_lin, acc, n);
        for (int i = 0; i < n; i++)
            for (long q = first; q < MIN(first + VW, Q); q++)
                out[i * Q + q] += share * acc[i][q - first];
    }
}

/* The output of one row, if there is one. */
static REAL NAME(single_output)(const Work *w, long fold, const REAL *row, const REAL *lin)
{
    const REAL *o = w->solution + fold * w->solution_size, *lin_o = w->lin_solution + fold * w->lin_width;
    vec acc = {0};
    for (long c = 0; c < w->target; c += VW)
        acc += *(const vec *)(row + c) * *(const vec *)(o + c);
    for (long a = 0; a < w->lin_width; a += VW)
        acc += *(const vec *)(lin + a) * *(const vec *)(lin_o + a);
    return NAME(lane_sum)(acc);
}

/* Adds the predictions of some of the fold's own rows, which its output weights have never seen. */
static APART void NAME(predict_rows)(const Task *t, Work *w, long cand, long draw, long fold, long from, long to)
{
    const long Q = t->linear.n_outputs, stride = w->row_width;
    const REAL *solution = w->solution + fold * w->solution_size, *lin = w->own_lin + from * w->lin_width;
    REAL *out = (REAL *)t->out + cand * t->linear.n_rows * Q;
    if (NAME(is_single)(t)) {
        NAME(predict_single)(t, w, cand, draw, fold, from, to);
        return;
    }
    NAME(fill)(t, w, cand, draw, from, to, w->target);
    out += from * Q;
    long j = 0;
    if (Q == 1)
        for (; j < to - from; j++)
            out[j] += NAME(single_output)(w, fold, w->block + j * stride, lin + j * w->lin_width) / t->n_draws;
    for (; j + 8 <= to - from; j += 8)
        NAME(predict_outputs)(t, w, solution, w->block + j * stride, lin + j * w->lin_width, out + j * Q, 8);
    for (; j < to - from; j++)
        NAME(predict_outputs)(t, w, solution, w->block + j * stride, lin + j * w->lin_width, out + j * Q, 1);
}

/* Sets the weights of the linear units apart, of one output: what stands in their place in a row belongs to other
 * columns. */
static void NAME(split_solution)(const Task *t, Work *w, long fold)
{
    REAL *o = w->solution + fold * w->solution_size;
    if (t->linear.n_outputs > 1)
        return;
    memcpy(w->lin_solution + fold * w->lin_width, o + w->target, w->n_lin * sizeof(REAL));
    memset(o + w->target, 0, (w->sys_width - w->target) * sizeof(REAL));
}
