/* Out-of-fold predictions of the one-layer SSFN for a chunk of candidates, phase by phase (see _task.h).
 *
 * Included once for each (scalar type, instruction set), after _rows.h and _solve.h. */

#define PAD(n) (((n) + VW - 1) / VW * VW)
#define TAKE(field, count)                             \
    do {                                               \
        w->field = (void *)(memory + bytes);           \
        bytes += (size_t)(count) * sizeof(*w->field);  \
        FORBID(memory + bytes, memory ? GAP : 0);      \
        bytes = (bytes + GAP + 63) / 64 * 64;          \
    } while (0)

static void NAME(set_widths)(const Task *t, Work *w)
{
    const long K = t->linear.n_folds, Q = t->linear.n_outputs;
    w->one = t->n_hidden;
    w->target = w->one + t->linear.intercept;
    w->lin = w->target + Q;
    w->n_lin = 2 * Q;
    w->lin_width = Q == 1 && !NAME(is_single)(t) ? PAD(w->n_lin) : w->n_lin; /* read as whole vectors */
    w->row_width = PAD(w->lin + K * w->n_lin);
    w->seg_width = PAD(w->lin);
    w->tail_first = t->n_hidden / VW * VW;
    w->n_params = w->target + w->n_lin;
    w->out_width = Q > 1 ? PAD(Q) : 1;
    w->sys_width = PAD(w->n_params + w->out_width);
    w->solution_size = Q > 1 ? w->n_params * w->out_width : w->sys_width;
    w->store_segments = t->blocked || (double)(K + 1) * w->seg_width * w->seg_width * sizeof(REAL) < (1 << 21);
}

/* Buffers in one stretch of memory for n candidates at a time; returns its length in bytes. */
static size_t NAME(lay_out)(const Task *t, Work *group, long n, char *memory)
{
    const long J = t->linear.n_rows, K = t->linear.n_folds, Q = t->linear.n_outputs;
    size_t bytes = 0;
    for (Work *w = group; w < group + n; w++) {
        *w = *group;
        NAME(set_widths)(t, w);
        if (w == group) {
            TAKE(block, BLOCK_ROWS * w->row_width);
            TAKE(weighted, t->weighted ? BLOCK_ROWS * w->row_width : 0);
            TAKE(system, (w->n_params + VW) * w->sys_width);
            TAKE(floor, w->n_params);
            TAKE(y, K * Q * J);
            NAME64(LinearWork) unused;
            NAME64(linear_keep)(&t->linear, t->n_new, &unused, NULL);
            TAKE(linear_scratch, NAME64(linear_lay_out)(&t->linear, &unused, NULL));
        }
        TAKE(tail, J * (w->row_width - w->tail_first));
        TAKE(own_lin, J * w->lin_width);
        TAKE(grams, (w->store_segments ? K + 1 : 2) * w->seg_width * w->seg_width);
        TAKE(total, w->seg_width * w->seg_width);
        TAKE(lin_gram, w->row_width * (w->row_width - w->seg_width));
    }
    return bytes;
}

/* Buffers for solving in double what was summed over several blocks. */
static __attribute__((unused)) size_t NAME(lay_out_solver)(const Task *t, Work *w, char *memory)
{
    size_t bytes = 0;
    NAME(set_widths)(t, w);
    TAKE(system, (w->n_params + VW) * w->sys_width);
    TAKE(floor, w->n_params);
    TAKE(total, w->seg_width * w->seg_width);
    TAKE(solution, t->linear.n_folds * w->solution_size);
    return bytes;
}

/* What is kept of a candidate from block to block, in `memory`: of its linear part, and of a draw. Both return the
 * length in bytes. */
static size_t NAME(keep_linear)(const Task *t, Work *w, char *memory)
{
    const long used = NAME64(linear_keep)(&t->linear, t->n_new, &w->linear, (double *)memory);
    NAME64(linear_lay_out)(&t->linear, &w->linear, w->linear_scratch);
    return (used * sizeof(double) + 63) / 64 * 64;
}

static size_t NAME(keep_draw)(const Task *t, Work *w, char *memory)
{
    const long K = t->linear.n_folds;
    NAME64(Solver) wide;
    NAME64(set_widths)(t, &wide);
    size_t bytes = 0;
    TAKE(shift, t->base_width);
    TAKE(solution, K * w->solution_size);
    TAKE(lin_solution, K * w->lin_width);
    TAKE(sums, t->blocked ? (K + 1) * wide.seg_width * wide.seg_width
                                + wide.row_width * (wide.row_width - wide.seg_width) : 0);
    return bytes;
}

/* Bytes that are kept of a candidate: of all draws, or where nothing has to wait for other blocks, of the current one. */
static size_t NAME(kept_bytes)(const Task *t)
{
    Work w = {0};
    NAME(set_widths)(t, &w);
    return NAME(keep_linear)(t, &w, NULL) + (t->blocked ? t->n_draws : 1) * NAME(keep_draw)(t, &w, NULL);
}
#undef TAKE
#undef PAD

/* Adds this block's sums to those of the blocks before, in double and laid out as for double. */
static void NAME(keep_sums)(const Task *t, const Work *w, const NAME64(Solver) *wide)
{
    const long K = t->linear.n_folds, seg = w->seg_width, lin_ld = w->row_width - seg;
    const long wide_seg = wide->seg_width, wide_lin_ld = wide->row_width - wide_seg;
    double *lin_sums = w->sums + (K + 1) * wide_seg * wide_seg;
    for (long part = 0; part <= K; part++)
        for (long r = 0; r < seg; r++) {
            const REAL *row = w->grams + (part * seg + r) * seg;
            double *sums = w->sums + (part * wide_seg + r) * wide_seg, *lin_row = lin_sums + r * wide_lin_ld;
            for (long c = r; c < wide_seg; c++)
                sums[c] += row[c];
            for (long c = r > wide_seg ? r : wide_seg; c < MIN(seg, wide->row_width); c++)
                lin_row[c - wide_seg] += row[c];
        }
    for (long r = 0; r < wide->row_width; r++)
        for (long c = seg; c < wide->row_width; c++)
            lin_sums[r * wide_lin_ld + c - wide_seg] += w->lin_gram[r * lin_ld + c - seg];
}

/* Output weights of all folds from sums over all blocks. Millions of rows make the ridge a rounding error of single
 * precision, so that the equations are solved in double; beside so many rows that costs nothing. */
static void NAME(solve_sums)(const Task *t, Work *w, NAME64(Solver) *wide)
{
    const long K = t->linear.n_folds, Q = t->linear.n_outputs;
    wide->grams = w->sums;
    wide->lin_gram = w->sums + (K + 1) * wide->seg_width * wide->seg_width;
    NAME64(sum_segments)(t, wide);
    for (long fold = 0; fold < K; fold++) {
        NAME64(solve_fold)(t, wide, fold);
        const double *from = wide->solution + fold * wide->solution_size;
        REAL *to = w->solution + fold * w->solution_size;
        for (long i = 0; i < w->n_params; i++)
            for (long q = 0; q < Q; q++)
                to[i * w->out_width + q] = from[i * wide->out_width + q];
        NAME(split_solution)(t, w, fold);
    }
}

/* Output weights of all folds from the sums over these rows, which are all. */
static void NAME(solve_here)(const Task *t, Work *w, long cand, long draw)
{
    const long K = t->linear.n_folds, area = w->seg_width * w->seg_width;
    const int64_t *bounds = t->linear.segments;
    NAME(sum_segments)(t, w);
    for (long fold = 0; fold < K; fold++) {
        if (!w->store_segments) { /* many folds: this one's Gram matrix is summed again */
            memset(w->grams + area, 0, area * sizeof(REAL));
            for (long from = bounds[fold + 1]; K > 1 && from < bounds[fold + 2]; from += BLOCK_ROWS)
                NAME(add_rows)(t, w, cand, draw, from, MIN(from + BLOCK_ROWS, bounds[fold + 2]), w->grams + area, 0);
        }
        NAME(solve_fold)(t, w, fold);
        NAME(split_solution)(t, w, fold);
    }
}

/* The phases of the linear part, and all that no draw changes. */
static void NAME(prepare)(const Task *t, Work *w, long cand)
{
    if (t->phases & LINEAR_SUMS)
        NAME64(linear_sums)(&t->linear, &w->linear, t->columns + cand * t->n_new * t->linear.n_rows);
    if (t->phases & LINEAR_SOLVE)
        NAME64(linear_solve)(&t->linear, &w->linear);
    if (t->phases & (LAYER_SUMS | PREDICT))
        NAME(fill_tail)(t, w, cand);
}

/* The phases of a draw for candidates [first, first + n) side by side, so that they share each block of `base` while
 * it is in the cache. */
static void NAME(score_draw)(const Task *t, Work *group, long first, long n, long draw, NAME64(Solver) *wide)
{
    const long K = t->linear.n_folds, area = group->seg_width * group->seg_width;
    /* Where some rows only judge, "total minus the fold's part" is what the others add up to: no need for that part. */
    const long last_summed = K == 1 ? 0 : K;
    const int64_t *bounds = t->linear.segments;
    if (t->phases & LAYER_SUMS) {
        for (long i = 0; i < n; i++)
            NAME(start)(t, group + i, first + i, draw);
        for (long seg = 0; seg <= last_summed; seg++)
            for (long from = bounds[seg]; from < bounds[seg + 1]; from += BLOCK_ROWS)
                for (long i = 0; i < n; i++) {
                    Work *w = group + i;
                    NAME(add_rows)(t, w, first + i, draw, from, MIN(from + BLOCK_ROWS, bounds[seg + 1]),
                                   w->grams + (w->store_segments ? seg * area : 0), 1);
                }
        for (long i = 0; t->blocked && i < n; i++)
            NAME(keep_sums)(t, group + i, wide);
    }
    for (long i = 0; t->phases & LAYER_SOLVE && i < n; i++) {
        if (t->blocked)
            NAME(solve_sums)(t, group + i, wide);
        else
            NAME(solve_here)(t, group + i, first + i, draw);
    }
    if (t->phases & PREDICT)
        for (long fold = 0; fold < K; fold++)
            for (long from = bounds[fold + 1]; from < bounds[fold + 2]; from += CACHED_ROWS)
                for (long i = 0; i < n; i++)
                    NAME(predict_rows)(t, group + i, first + i, draw, fold, from,
                                       MIN(from + CACHED_ROWS, bounds[fold + 2]));
}

static int NAME(score)(const Task *t)
{
    Work group[GROUP_SIZE];
    NAME64(Solver) wide;
    const int roomy = (double)t->linear.n_rows * t->base_width * sizeof(REAL) > GROUP_FROM_BYTES;
    const long size = roomy ? GROUP_SIZE : 1;
    const size_t scratch = NAME(lay_out)(t, group, size, NULL), kept = NAME(kept_bytes)(t);
    const size_t solver = t->blocked ? NAME64(lay_out_solver)(t, &wide, NULL) : 0;
    char *memory = calloc(scratch + solver + (t->blocked ? 0 : size * kept) + 64, 1);
    if (!memory)
        return 0;
    char *aligned = memory + (64 - (uintptr_t)memory % 64) % 64, *own = aligned + scratch;
    NAME(lay_out)(t, group, size, aligned);
    if (t->blocked)
        NAME64(lay_out_solver)(t, &wide, own);
    if (t->phases & PREDICT)
        memset(t->out, 0, t->n_candidates * t->linear.n_rows * t->linear.n_outputs * sizeof(REAL));
    for (long first = 0; first < t->n_candidates; first += size) {
        const long n = MIN(size, t->n_candidates - first);
        ALLOW(own, t->blocked ? 0 : size * kept);
        char *state = t->blocked ? t->state + first * kept : memset(own, 0, size * kept);
        size_t linear_bytes = 0, draw_bytes = 0;
        for (long i = 0; i < n; i++) {
            linear_bytes = NAME(keep_linear)(t, group + i, state + i * kept);
            NAME(prepare)(t, group + i, first + i);
        }
        for (long draw = 0; draw < t->n_draws; draw++) {
            for (long i = 0; i < n; i++)
                draw_bytes = NAME(keep_draw)(t, group + i,
                                             state + i * kept + linear_bytes + (t->blocked ? draw * draw_bytes : 0));
            NAME(score_draw)(t, group, first, n, draw, &wide);
        }
    }
    free(memory);
    return 1;
}
#undef Work
