/* Rows of the one-layer SSFN, and their Gram matrices.
 *
 * A sample's row is [hidden units | 1 | targets | linear units of every fold]; the linear units relu(+-Y) of a
 * fold are zero on the fold's own rows. So one Gram product over all rows holds the normal equations of all
 * folds: "total minus the fold's part" is what the fold trains on.
 *
 * Included once for each (scalar type, instruction set), after _tiles.h. */

typedef struct {
    long one, target, lin;    /* where in a row the intercept, the targets and the linear units begin */
    long n_lin, lin_width;    /* linear units of a fold: 2 Q; padded for one output, but in the simplest case */
    long row_width;           /* padded */
    long tail_first;          /* the vector in which the hidden units end: from here on `tail` is added */
    long seg_width;           /* columns whose Gram matrices are kept apart by segment: up to the targets */
    long n_params, sys_width; /* of a fold's normal equations */
    long out_width;           /* outputs, padded if there are several: the solution has so many for each parameter */
    long solution_size;       /* of a fold */
    int store_segments;
    /* Shared by the candidates that are worked on together: */
    REAL *block;              /* BLOCK_ROWS x row_width */
    REAL *weighted;           /* BLOCK_ROWS x row_width */
    REAL *system;             /* (n_params + VW) x sys_width */
    REAL *floor;              /* n_params */
    double *y;                /* K x Q x J */
    double *linear_scratch;
    /* A candidate's own: */
    REAL *tail;               /* J x (row_width - tail_first): all of the row but the hidden units */
    REAL *own_lin;            /* J x lin_width: the linear units of a row in the fold that it judges */
    REAL *grams;              /* (K + 1 or 2) x seg_width x seg_width */
    REAL *total;              /* seg_width x seg_width */
    REAL *lin_gram;           /* row_width x (row_width - seg_width) */
    /* A candidate's own, kept from block to block: */
    NAME64(LinearWork) linear;
    REAL *shift;              /* base_width */
    REAL *solution;           /* K x n_params x out_width weights; of one output, hidden units and 1, zero beyond */
    REAL *lin_solution;       /* K x lin_width: then those of the linear units */
    double *sums;             /* where there are several blocks: grams and lin_gram, widths as for double */
} NAME(Work);
typedef NAME(Work) NAME(Solver); /* a name for other templates */
#define Work NAME(Work)

/* One output, one new column: by far the most common case, with predictions of its own (`predict_single`). */
static inline int NAME(is_single)(const Task *t)
{
    return t->linear.n_outputs == 1 && t->n_new == 1;
}

/* Hidden units of `n` rows, before the tail: relu(base + x r) - shift. The rows go side by side, so that the
 * weights and the shift are read once for all of them. */
static inline __attribute__((always_inline)) void NAME(hidden)(
    const Task *t, const Work *w, const double *x, const REAL *slots, const REAL *base, REAL *row, const int n)
{
    const long width = t->base_width, stride = w->row_width, n_new = t->n_new, J = t->linear.n_rows;
    const REAL *shift = w->shift;
    if (n_new == 1) { /* by far the most common case */
        REAL first[2];
        for (int i = 0; i < n; i++)
            first[i] = x[i];
        for (long c = 0; c < width; c += VW) {
            const vec slot = *(const vec *)(slots + c), shifts = *(const vec *)(shift + c);
            for (int i = 0; i < n; i++)
                *(vec *)(row + i * stride + c) =
                    NAME(relu)(*(const vec *)(base + i * width + c) + first[i] * slot) - shifts;
        }
        return;
    }
    for (int i = 0; i < n; i++)
        for (long c = 0; c < width; c += VW) {
            vec z = *(const vec *)(base + i * width + c);
            for (long a = 0; a < n_new; a++)
                z += (REAL)x[a * J + i] * *(const vec *)(slots + a * width + c);
            *(vec *)(row + i * stride + c) = NAME(relu)(z) - *(const vec *)(shift + c);
        }
}

/* Rows [from, to) into the block: hidden units, and the tail up to a column. */
static void NAME(fill)(const Task *t, const Work *w, long cand, long draw, long from, long to, long end)
{
    const long J = t->linear.n_rows, width = t->base_width, stride = w->row_width;
    const long tail_first = w->tail_first, tail_width = stride - tail_first;
    const double *x = t->columns + cand * t->n_new * J;
    const REAL *base = (const REAL *)t->base + draw * J * width;
    const REAL *slots = (const REAL *)t->slot_weights + draw * t->n_new * width;
    long j = from;
    for (; j + 2 <= to; j += 2)
        NAME(hidden)(t, w, x + j, slots, base + j * width, w->block + (j - from) * stride, 2);
    for (; j < to; j++)
        NAME(hidden)(t, w, x + j, slots, base + j * width, w->block + (j - from) * stride, 1);
    for (j = from; j < to; j++) {
        REAL *row = w->block + (j - from) * stride;
        const REAL *tail = w->tail + j * tail_width - tail_first;
        if (tail_first < width) /* the vector that hidden units and tail share */
            *(vec *)(row + tail_first) += *(const vec *)(tail + tail_first);
        for (long c = width; c < end; c += VW)
            *(vec *)(row + c) = *(const vec *)(tail + c);
    }
}

/* The intercept makes the model blind to a constant added to a hidden unit. Taking away the unit's mean over
 * the first rows spares the Gram matrix its one huge eigenvalue, which single precision would pay for. */
static void NAME(find_shift)(const Task *t, Work *w, long cand, long draw)
{
    const long n = MIN(t->linear.n_rows, SHIFT_ROWS);
    memset(w->shift, 0, t->base_width * sizeof(REAL));
    if (!t->linear.intercept)
        return;
    NAME(fill)(t, w, cand, draw, 0, n, 0);
    for (long j = 0; j < n; j++)
        for (long c = 0; c < t->base_width; c += VW)
            *(vec *)(w->shift + c) += *(vec *)(w->block + j * w->row_width + c);
    for (long h = 0; h < t->base_width; h++)
        w->shift[h] = h < t->n_hidden ? w->shift[h] / n : 0;
}

/* Adds rows [from, to) to the Gram matrix of their segment and, for linear units, of all rows. */
static APART void NAME(add_rows)(const Task *t, Work *w, long cand, long draw, long from, long to, REAL *gram,
                           int with_linear)
{
    const long ld = w->row_width, rows = to - from, lin_ld = w->row_width - w->seg_width;
    const REAL *P = w->block, *V = w->block;
    NAME(fill)(t, w, cand, draw, from, to, ld);
    if (t->weighted) {
        for (long j = 0; j < rows; j++)
            for (long c = 0; c < ld; c += VW)
                *(vec *)(w->weighted + j * ld + c) = (REAL)t->linear.weights[from + j] * *(vec *)(P + j * ld + c);
        V = w->weighted;
    }
    NAME(gram_add)(P, V, ld, rows, w->seg_width, gram, w->seg_width);
    if (!with_linear)
        return;
    for (long c = w->seg_width; c < w->row_width; c += VW) {
        /* Products of different folds' linear units are never asked for: pass over tiles that hold only such. */
        const long first_fold = (c - w->lin) / w->n_lin;
        for (long r = 0; r <= c; r += VW)
            if (r < w->lin || (r + VW - 1 - w->lin) / w->n_lin >= first_fold)
                NAME(tile)(P + r, ld, V + c, ld, rows, w->lin_gram + r * lin_ld + c - w->seg_width, lin_ld, 1);
    }
}

/* Empty Gram matrices, and in the first block the shift of this draw. */
static void NAME(start)(const Task *t, Work *w, long cand, long draw)
{
    const long area = w->seg_width * w->seg_width;
    memset(w->grams, 0, (w->store_segments ? t->linear.n_folds + 1 : 1) * area * sizeof(REAL));
    memset(w->lin_gram, 0, w->row_width * (w->row_width - w->seg_width) * sizeof(REAL));
    if (t->phases & LAYER_START)
        NAME(find_shift)(t, w, cand, draw);
}

static void NAME(sum_segments)(const Task *t, Work *w)
{
    const long width = w->seg_width, area = width * width;
    memcpy(w->total, w->grams, area * sizeof(REAL));
    if (w->store_segments)
        for (long r = 0; r < width; r++)
            for (long c = r / VW * VW; c < width; c += VW) {
                vec sum = *(vec *)(w->total + r * width + c);
                for (long seg = 1; seg <= t->linear.n_folds; seg++)
                    sum += *(vec *)(w->grams + seg * area + r * width + c);
                *(vec *)(w->total + r * width + c) = sum;
            }
}

/* relu(y) and, `apart` further on, relu(-y), into one column each of rows that are `width` wide. */
static void NAME(split_signs)(const double *y, REAL *rows, long width, long apart, long from, long to)
{
    for (long j = from; j < to; j++) {
        const REAL value = y[j], up = value > 0 ? value : 0;
        rows[j * width] = up;
        rows[j * width + apart] = up - value;
    }
}

/* The parts of the rows that no draw changes: 1, targets, linear units. */
static APART void NAME(fill_tail)(const Task *t, Work *w, long cand)
{
    const Linear *lin = &t->linear;
    const long J = lin->n_rows, Q = lin->n_outputs, width = w->row_width - w->tail_first;
    const REAL *targets = t->targets;
    for (long j = 0; j < J; j++) {
        REAL *tail = w->tail + j * width - w->tail_first;
        if (lin->intercept)
            tail[w->one] = 1;
        for (long q = 0; q < Q; q++)
            tail[w->target + q] = targets[j * Q + q];
    }
    NAME64(linear_predictions)(lin, &w->linear, t->columns + cand * t->n_new * J, w->y);
    for (long from = 0; from < J; from += CACHED_ROWS) {
        const long to = MIN(from + CACHED_ROWS, J);
        for (long fold = 0; fold < lin->n_folds; fold++)
            for (long q = 0; q < Q; q++) {
                const double *y = w->y + (fold * Q + q) * J;
                const long first = lin->segments[fold + 1], last = lin->segments[fold + 2];
                REAL *tail = w->tail + w->lin + fold * w->n_lin + q - w->tail_first, *own = w->own_lin + q;
                NAME(split_signs)(y, tail, width, Q, from, MIN(first, to));
                /* In `tail` these stay zero: */
                NAME(split_signs)(y, own, w->lin_width, Q, MAX(first, from), MIN(last, to));
                NAME(split_signs)(y, tail, width, Q, MAX(last, from), to);
            }
    }
}
