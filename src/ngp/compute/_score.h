/* Out-of-fold predictions of the one-layer SSFN for a chunk of candidates.
 *
 * Included once for each (scalar type, instruction set), after _rows.h and _solve.h. */

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
        w->lin_width = NAME(is_single)(t) ? w->n_lin : PAD(w->n_lin);
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
        TAKE(own_lin, J * w->lin_width);
        TAKE(shift, t->base_width);
        TAKE(grams, (w->store_segments ? K + 1 : 2) * w->seg_width * w->seg_width);
        TAKE(total, w->seg_width * w->seg_width);
        TAKE(lin_gram, w->row_width * (w->row_width - w->seg_width));
        TAKE(solution, K * Q * w->sys_width);
        TAKE(lin_solution, K * Q * w->lin_width);
    }
#undef TAKE
#undef PAD
    return bytes;
}

/* Candidates [first, first + n) side by side, so that they share each block of `base` while it is in the cache. */
static void NAME(score_group)(const Task *t, Work *group, long first, long n)
{
    const long K = t->linear.n_folds, area = group->seg_width * group->seg_width;
    /* Where some rows only judge, "total minus the fold's part" is what the others add up to: no need for that part. */
    const long last_summed = K == 1 ? 0 : K;
    const int64_t *bounds = t->linear.segments;
    for (long i = 0; i < n; i++)
        NAME(fill_tail)(t, group + i, first + i);
    for (long draw = 0; draw < t->n_draws; draw++) {
        for (long i = 0; i < n; i++)
            NAME(start)(t, group + i, first + i, draw);
        for (long seg = 0; seg <= last_summed; seg++)
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
                    for (long from = bounds[fold + 1]; K > 1 && from < bounds[fold + 2]; from += BLOCK_ROWS)
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
