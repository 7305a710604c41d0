/* Out-of-fold predictions of the one-layer SSFN for a chunk of candidates.
 *
 * A sample's row is [hidden units | 1 | targets | linear units of every fold]; the linear units relu(+-Y) of a
 * fold are zero on the fold's own rows. So one Gram product over all rows holds the normal equations of all
 * folds: "total minus the fold's part" is what the fold trains on.
 *
 * Included once for each (scalar type, instruction set), after _tiles.h. */

typedef struct {
    long one, target, lin;    /* where in a row the intercept, the targets and the linear units begin */
    long n_lin;               /* linear units of a fold: 2 Q or none */
    long row_width;           /* padded */
    long tail_first;          /* the vector in which the hidden units end: from here on `tail` is added */
    long seg_width;           /* columns whose Gram matrices are kept apart by segment: up to the targets */
    long n_params, sys_width; /* of a fold's normal equations */
    int store_segments;
    /* Shared by the candidates that are worked on together: */
    REAL *block;              /* BLOCK_ROWS x row_width */
    REAL *weighted;           /* BLOCK_ROWS x row_width */
    REAL *system;             /* (n_params + VW) x sys_width */
    REAL *floor;              /* n_params */
    REAL *forward;            /* sys_width */
    double *y;                /* K x Q x J */
    double *linear_scratch;
    /* A candidate's own: */
    REAL *tail;               /* J x (row_width - tail_first): all of the row but the hidden units */
    REAL *own_lin;            /* J x n_lin: the linear units of a row in the fold that it judges */
    REAL *shift;              /* base_width */
    REAL *grams;              /* (K + 1 or 2) x seg_width x seg_width */
    REAL *total;              /* seg_width x seg_width */
    REAL *lin_gram;           /* row_width x (row_width - seg_width) */
    REAL *solution;           /* K x Q x sys_width: weights of hidden units and 1, zero beyond */
    REAL *lin_solution;       /* K x Q x n_lin: weights of the linear units */
} NAME(Work);
#define Work NAME(Work)

/* Hidden units of `n` rows, before the tail: relu(base + x r) - shift. The rows go side by side, so that the
 * weights and the shift are read once for all of them. */
static inline __attribute__((always_inline)) void NAME(hidden)(
    const Task *t, const Work *w, const double *x, const REAL *slots, const REAL *base, REAL *row, const int n)
{
    const long width = t->base_width, stride = w->row_width, n_slots = t->n_slots, J = t->linear.n_rows;
    const REAL *shift = w->shift;
    if (n_slots == 1 && !t->unit_norm) { /* by far the most common case */
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
            for (long a = 0; a < n_slots; a++)
                z += (REAL)x[a * J + i] * *(const vec *)(slots + a * width + c);
            if (!t->unit_norm)
                z = NAME(relu)(z) - *(const vec *)(shift + c);
            *(vec *)(row + i * stride + c) = z;
        }
}

/* What is left to do to a row's hidden units where each sample's projections are scaled to unit norm first. */
static void NAME(normalize)(const Task *t, const Work *w, REAL *row)
{
    vec squares = {0};
    for (long c = 0; c < t->base_width; c += VW)
        squares += *(vec *)(row + c) * *(vec *)(row + c);
    const REAL norm = SQRT(NAME(lane_sum)(squares)), factor = norm > 0 ? 1 / norm : 0;
    for (long c = 0; c < t->base_width; c += VW)
        *(vec *)(row + c) = NAME(relu)(factor * *(vec *)(row + c)) - *(const vec *)(w->shift + c);
}

/* Rows [from, to) into the block: hidden units and tail. */
static void NAME(fill)(const Task *t, const Work *w, long cand, long draw, long from, long to)
{
    const long J = t->linear.n_rows, width = t->base_width, stride = w->row_width;
    const long tail_first = w->tail_first, tail_width = stride - tail_first;
    const double *x = t->columns + cand * t->n_new * J;
    const REAL *base = (const REAL *)t->base + cand * t->base_stride + draw * J * width;
    const REAL *slots = (const REAL *)t->slot_weights + draw * t->n_slots * width;
    long j = from;
    for (; j + 2 <= to; j += 2)
        NAME(hidden)(t, w, x + j, slots, base + j * width, w->block + (j - from) * stride, 2);
    for (; j < to; j++)
        NAME(hidden)(t, w, x + j, slots, base + j * width, w->block + (j - from) * stride, 1);
    for (j = from; j < to; j++) {
        REAL *row = w->block + (j - from) * stride;
        const REAL *tail = w->tail + j * tail_width - tail_first;
        if (t->unit_norm)
            NAME(normalize)(t, w, row);
        if (tail_first < width) /* the vector that hidden units and tail share */
            *(vec *)(row + tail_first) += *(const vec *)(tail + tail_first);
        for (long c = width; c < stride; c += VW)
            *(vec *)(row + c) = *(const vec *)(tail + c);
    }
}

/* The intercept makes the model blind to a constant added to a hidden unit. Taking away the unit's mean over
 * the first rows spares the Gram matrix its one huge eigenvalue, which single precision would pay for. */
static void NAME(find_shift)(const Task *t, Work *w, long cand, long draw)
{
    const long n = MIN(t->linear.n_rows, SHIFT_ROWS);
    memset(w->shift, 0, t->base_width * sizeof(REAL));
    if (!t->intercept)
        return;
    NAME(fill)(t, w, cand, draw, 0, n);
    for (long j = 0; j < n; j++)
        for (long c = 0; c < t->base_width; c += VW)
            *(vec *)(w->shift + c) += *(vec *)(w->block + j * w->row_width + c);
    for (long h = 0; h < t->base_width; h++)
        w->shift[h] = h < t->n_hidden ? w->shift[h] / n : 0;
}

/* Adds rows [from, to) to the Gram matrix of their segment and, for linear units, of all rows. */
static void NAME(add_rows)(const Task *t, Work *w, long cand, long draw, long from, long to, REAL *gram,
                           int with_linear)
{
    const long ld = w->row_width, rows = to - from, lin_ld = w->row_width - w->seg_width;
    const REAL *P = w->block, *V = w->block;
    NAME(fill)(t, w, cand, draw, from, to);
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

/* Empty Gram matrices, and the shift of this draw. */
static void NAME(start)(const Task *t, Work *w, long cand, long draw)
{
    const long area = w->seg_width * w->seg_width;
    memset(w->grams, 0, (w->store_segments ? t->linear.n_folds + 1 : 1) * area * sizeof(REAL));
    memset(w->lin_gram, 0, w->row_width * (w->row_width - w->seg_width) * sizeof(REAL));
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
static void NAME(fill_tail)(const Task *t, Work *w, long cand)
{
    const Linear *lin = &t->linear;
    const long J = lin->n_rows, Q = lin->n_outputs, width = w->row_width - w->tail_first;
    const REAL *targets = t->targets;
    for (long j = 0; j < J; j++) {
        REAL *tail = w->tail + j * width - w->tail_first;
        if (t->intercept)
            tail[w->one] = 1;
        for (long q = 0; q < Q; q++)
            tail[w->target + q] = targets[j * Q + q];
    }
    if (!t->use_linear)
        return;
    NAME64(linear_predictions)(lin, t->columns + cand * t->n_new * J, t->n_new, w->linear_scratch, w->y);
    for (long fold = 0; fold < lin->n_folds; fold++)
        for (long q = 0; q < Q; q++) {
            const double *y = w->y + (fold * Q + q) * J;
            const long first = lin->segments[fold + 1], last = lin->segments[fold + 2];
            REAL *tail = w->tail + w->lin + fold * w->n_lin + q - w->tail_first, *own = w->own_lin + q;
            NAME(split_signs)(y, tail, width, Q, 0, first);
            NAME(split_signs)(y, own, w->n_lin, Q, first, last); /* in `tail` these stay zero */
            NAME(split_signs)(y, tail, width, Q, last, J);
        }
}

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
        /* What is left of total minus part is no better than the rounding of the total; without a ridge, all that
         * the elimination adds to it may stand in for a pivot that should be zero. */
        w->floor[i] = (ridge > 0 ? 8 : w->n_params) * EPSILON * (i < own ? w->total[i * seg + i] : *pivot);
        if (!t->intercept || i != w->one)
            *pivot += ridge;
    }
}

/* Squared norms of the penalised weights O, and of U^-T O, from which Newton's step follows. */
static void NAME(norms)(const Task *t, Work *w, const REAL *solution, double *norm, double *curvature)
{
    const long n = w->n_params, ld = w->sys_width;
    REAL *q = w->forward;
    *norm = *curvature = 0;
    for (long output = 0; output < t->linear.n_outputs; output++) {
        memcpy(q, solution + output * ld, n * sizeof(REAL));
        if (t->intercept)
            q[w->one] = 0;
        for (long i = 0; i < n; i++)
            *norm += (double)q[i] * q[i];
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
    const long n = w->n_params, ld = w->sys_width, Q = t->linear.n_outputs;
    REAL *solution = w->solution + fold * Q * ld;
    double lambda = t->ridge;
    for (int attempt = 0; attempt < 100; attempt++) {
        NAME(assemble)(t, w, fold, lambda);
        if (!NAME(cholesky)(w->system, n, ld, w->floor)) {
            double smallest = 0; /* the smallest ridge that this precision can factor, about */
            for (long i = 0; i < n; i++)
                smallest += w->floor[i];
            lambda = lambda > smallest / n ? 4 * lambda : 4 * smallest / n + 1e-30;
            continue;
        }
        for (long q = 0; q < Q; q++)
            NAME(back_substitute)(w->system, n, ld, n + q, solution + q * ld);
        if (!(t->norm_bound > 0))
            return;
        double norm, curvature;
        NAME(norms)(t, w, solution, &norm, &curvature);
        const double excess = (sqrt(norm) - t->norm_bound) / t->norm_bound;
        if (excess <= 8 * EPSILON)
            return;
        lambda += norm / curvature * excess;
    }
}

/* The most common case of `predict_rows`, without a detour through the block: the shift has become a constant. */
static void NAME(predict_single)(const Task *t, Work *w, long cand, long draw, long fold, long from, long to)
{
    const long J = t->linear.n_rows, width = t->base_width, n_lin = w->n_lin;
    const double *x = t->columns + cand * J;
    const REAL *base = (const REAL *)t->base + cand * t->base_stride + draw * J * width;
    const REAL *slots = (const REAL *)t->slot_weights + draw * width;
    const REAL *o = w->solution + fold * w->sys_width, *lin_o = w->lin_solution + fold * n_lin;
    const REAL share = (REAL)1 / t->n_draws;
    REAL *out = (REAL *)t->out + cand * J, weights[width], constant = t->intercept ? o[w->one] : 0;
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

/* Adds the predictions of some of the fold's own rows, which its output weights have never seen. */
static void NAME(predict_rows)(const Task *t, Work *w, long cand, long draw, long fold, long from, long to)
{
    const long Q = t->linear.n_outputs, own = w->target, n_lin = w->n_lin, stride = w->row_width;
    const REAL share = (REAL)1 / t->n_draws;
    REAL *out = (REAL *)t->out + cand * t->linear.n_rows * Q;
    if (Q == 1 && t->n_slots == 1 && !t->unit_norm) {
        NAME(predict_single)(t, w, cand, draw, fold, from, to);
        return;
    }
    NAME(fill)(t, w, cand, draw, from, to);
    for (long q = 0; q < Q; q++) {
        const REAL *o = w->solution + (fold * Q + q) * w->sys_width, *lin_o = w->lin_solution + (fold * Q + q) * n_lin;
        for (long j = from; j < to; j++) {
            const REAL *row = w->block + (j - from) * stride, *lin = w->own_lin + j * n_lin;
            vec acc = {0};
            for (long c = 0; c < own; c += VW)
                acc += *(const vec *)(row + c) * *(const vec *)(o + c);
            REAL sum = NAME(lane_sum)(acc);
            for (long a = 0; a < n_lin; a++)
                sum += lin[a] * lin_o[a];
            out[j * Q + q] += share * sum;
        }
    }
}

/* Sets the weights of the linear units apart: what stands in their place in a row belongs to other columns. */
static void NAME(split_solution)(const Task *t, Work *w, long fold)
{
    for (long q = 0; q < t->linear.n_outputs; q++) {
        const long i = fold * t->linear.n_outputs + q;
        REAL *o = w->solution + i * w->sys_width;
        memcpy(w->lin_solution + i * w->n_lin, o + w->target, w->n_lin * sizeof(REAL));
        memset(o + w->target, 0, (w->sys_width - w->target) * sizeof(REAL));
    }
}

/* Sizes, then buffers in one stretch of memory for n candidates at a time; returns its length in bytes. */
static size_t NAME(lay_out)(const Task *t, Work *group, long n, char *memory)
{
    const long J = t->linear.n_rows, K = t->linear.n_folds, Q = t->linear.n_outputs;
    size_t bytes = 0;
#define PAD(n) (((n) + VW - 1) / VW * VW)
#define TAKE(field, count)                                             \
    do {                                                               \
        w->field = (void *)(memory + bytes);                           \
        bytes += ((size_t)(count) * sizeof(*w->field) + 63) / 64 * 64; \
    } while (0)
    for (Work *w = group; w < group + n; w++) {
        *w = *group;
        w->one = t->n_hidden;
        w->target = w->one + t->intercept;
        w->lin = w->target + Q;
        w->n_lin = t->use_linear ? 2 * Q : 0;
        w->row_width = PAD(w->lin + K * w->n_lin);
        w->seg_width = PAD(w->lin);
        w->tail_first = t->n_hidden / VW * VW;
        w->n_params = w->target + w->n_lin;
        w->sys_width = PAD(w->n_params + Q);
        w->store_segments = (double)(K + 1) * w->seg_width * w->seg_width * sizeof(REAL) < (1 << 21);
        if (w == group) {
            TAKE(block, BLOCK_ROWS * w->row_width);
            TAKE(weighted, t->weighted ? BLOCK_ROWS * w->row_width : 0);
            TAKE(system, (w->n_params + VW) * w->sys_width);
            TAKE(floor, w->n_params);
            TAKE(forward, w->sys_width);
            TAKE(y, t->use_linear ? K * Q * J : 0);
            NAME64(LinearWork) unused;
            TAKE(linear_scratch, t->use_linear ? NAME64(linear_lay_out)(&t->linear, t->n_new, &unused, NULL) : 0);
        }
        TAKE(tail, J * (w->row_width - w->tail_first));
        TAKE(own_lin, J * w->n_lin);
        TAKE(shift, t->base_width);
        TAKE(grams, (w->store_segments ? K + 1 : 2) * w->seg_width * w->seg_width);
        TAKE(total, w->seg_width * w->seg_width);
        TAKE(lin_gram, w->row_width * (w->row_width - w->seg_width));
        TAKE(solution, K * Q * w->sys_width);
        TAKE(lin_solution, K * Q * w->n_lin);
    }
#undef TAKE
#undef PAD
    return bytes;
}

/* Candidates [first, first + n) side by side, so that they share each block of `base` while it is in the cache. */
static void NAME(score_group)(const Task *t, Work *group, long first, long n)
{
    const long K = t->linear.n_folds, area = group->seg_width * group->seg_width;
    const int64_t *bounds = t->linear.segments;
    for (long i = 0; i < n; i++)
        NAME(fill_tail)(t, group + i, first + i);
    for (long draw = 0; draw < t->n_draws; draw++) {
        for (long i = 0; i < n; i++)
            NAME(start)(t, group + i, first + i, draw);
        for (long seg = 0; seg <= K; seg++)
            for (long from = bounds[seg]; from < bounds[seg + 1]; from += BLOCK_ROWS)
                for (long i = 0; i < n; i++) {
                    Work *w = group + i;
                    NAME(add_rows)(t, w, first + i, draw, from, MIN(from + BLOCK_ROWS, bounds[seg + 1]),
                                   w->grams + (w->store_segments ? seg * area : 0), 1);
                }
        for (long i = 0; i < n; i++) {
            Work *w = group + i;
            NAME(sum_segments)(t, w);
            for (long fold = 0; fold < K; fold++) {
                if (!w->store_segments) { /* many folds: this one's Gram matrix is summed again */
                    memset(w->grams + area, 0, area * sizeof(REAL));
                    for (long from = bounds[fold + 1]; from < bounds[fold + 2]; from += BLOCK_ROWS)
                        NAME(add_rows)(t, w, first + i, draw, from, MIN(from + BLOCK_ROWS, bounds[fold + 2]),
                                       w->grams + area, 0);
                }
                NAME(solve_fold)(t, w, fold);
                NAME(split_solution)(t, w, fold);
            }
        }
        for (long fold = 0; fold < K; fold++)
            for (long from = bounds[fold + 1]; from < bounds[fold + 2]; from += BLOCK_ROWS)
                for (long i = 0; i < n; i++)
                    NAME(predict_rows)(t, group + i, first + i, draw, fold, from,
                                       MIN(from + BLOCK_ROWS, bounds[fold + 2]));
    }
}

static int NAME(score)(const Task *t)
{
    Work group[GROUP_SIZE];
    const int roomy = (double)t->linear.n_rows * t->base_width * sizeof(REAL) > GROUP_FROM_BYTES;
    const long size = roomy ? GROUP_SIZE : 1;
    const size_t bytes = NAME(lay_out)(t, group, size, NULL) + 64;
    char *memory = calloc(bytes, 1);
    if (!memory)
        return 0;
    NAME(lay_out)(t, group, size, memory + (64 - (uintptr_t)memory % 64) % 64);
    memset(t->out, 0, t->n_candidates * t->linear.n_rows * t->linear.n_outputs * sizeof(REAL));
    for (long first = 0; first < t->n_candidates; first += size)
        NAME(score_group)(t, group, first, MIN(size, t->n_candidates - first));
    free(memory);
    return 1;
}
#undef Work
