/* The linear part of the first layer: for each candidate and each fold, the ridge prediction from S + g.
 *
 * With the ridge state of S on a fold's training rows (inverse, means, residuals), adding the columns X_g
 * needs no new regression: with c = X_S^T W X_g and A = inverse c, the residual columns X_g - X_S A and
 * their small m x m system carry the rest. All of it in double: O(J k) operations beside the O(J n^2) of
 * the Gram product. Everything that runs over samples is stored with the samples contiguous.
 *
 * Three steps: sums over the rows, block after block; coefficients from them; predictions for any block of rows.
 *
 * Included once for each instruction set, after _tiles.h for double. */

typedef struct {
    long m, r;         /* new columns; what is pushed through X_S for each fold: m columns, or Q outputs if fewer */
    long cell;         /* length of one segment's moments: k x m with S, m x m with each other, m sums */
    long height;       /* K x r, padded */
    /* Kept from block to block: */
    double *moments;   /* K + 1 cells */
    double *slopes;    /* K x m x Q: sums of X_g times the residuals, then what follows from them */
    double *offsets;   /* K x (m + Q) */
    double *B;         /* k x height */
    /* Scratch: */
    double *weighted;  /* m x J: W X_g */
    double *total;     /* sum of the moments */
    double *c, *A;     /* k x m each */
    double *D;         /* m x m */
    double *pushed;    /* height x padded_rows: B^T X_S */
} NAME(LinearWork);
#define LinearWork NAME(LinearWork)

#define TAKE(field, count) \
    (w->field = memory + used, used += (count), FORBID(memory + used, memory ? GAP : 0), used += GAP / sizeof(double))

/* Lays out in `memory` what is kept from block to block; returns how many doubles that takes. */
static long NAME(linear_keep)(const Linear *lin, long m, LinearWork *w, double *memory)
{
    const long k = lin->n_selected, K = lin->n_folds, Q = lin->n_outputs;
    long used = 0;
    w->m = m;
    w->r = MIN(m, Q);
    w->cell = k * m + m * m + m;
    w->height = (K * w->r + VW - 1) / VW * VW;
    TAKE(moments, (K + 1) * w->cell);
    TAKE(slopes, K * m * Q);
    TAKE(offsets, K * (m + Q));
    TAKE(B, k * w->height);
    return used;
}

/* The same for the scratch. */
static long NAME(linear_lay_out)(const Linear *lin, LinearWork *w, double *memory)
{
    const long k = lin->n_selected, m = w->m;
    long used = 0;
    TAKE(weighted, m * lin->n_rows);
    TAKE(total, w->cell);
    TAKE(c, k * m);
    TAKE(A, k * m);
    TAKE(D, m * m);
    TAKE(pushed, w->height * lin->padded_rows);
    return used;
}
#undef TAKE

static double NAME(dot)(const double *a, const double *b, long n)
{
    vec acc[4] = {{0}, {0}, {0}, {0}};
    long j = 0;
    for (; j + 4 * VW <= n; j += 4 * VW)
        for (int part = 0; part < 4; part++)
            acc[part] += *(const vec *)(a + j + part * VW) * *(const vec *)(b + j + part * VW);
    double sum = NAME(lane_sum)((acc[0] + acc[1]) + (acc[2] + acc[3]));
    for (; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

/* D w = rhs for a small symmetric positive definite D (m x m), right-hand sides m x q, both overwritten. */
static void NAME(solve_small)(double *D, long m, double *rhs, long q, double floor)
{
    for (long i = 0; i < m; i++) {
        for (long p = 0; p < i; p++) {
            const double factor = D[i * m + p] / D[p * m + p];
            for (long c = p; c < m; c++)
                D[i * m + c] -= factor * D[p * m + c];
            for (long c = 0; c < q; c++)
                rhs[i * q + c] -= factor * rhs[p * q + c];
        }
        /* A column that repeats others leaves nothing but rounding noise: never divide by that. */
        if (!(D[i * m + i] > floor))
            D[i * m + i] = INFINITY;
    }
    for (long i = m - 1; i >= 0; i--)
        for (long c = 0; c < q; c++) {
            double sum = rhs[i * q + c];
            for (long p = i + 1; p < m; p++)
                sum -= D[i * m + p] * rhs[p * q + c];
            rhs[i * q + c] = sum / D[i * m + i];
        }
}

/* Adds the second moments of the new columns with S, with each other and with one, a segment at a time, and their
 * products with the residuals. */
static void NAME(linear_sums)(const Linear *lin, const LinearWork *w, const double *x)
{
    const long J = lin->n_rows, k = lin->n_selected, m = w->m, Q = lin->n_outputs;
    for (long a = 0; a < m; a++)
        for (long j = 0; j < J; j++)
            w->weighted[a * J + j] = lin->weights[j] * x[a * J + j];
    for (long seg = 0; seg <= lin->n_folds; seg++) {
        const long from = lin->segments[seg], n = lin->segments[seg + 1] - from;
        double *cell = w->moments + seg * w->cell;
        for (long a = 0; a < m; a++) {
            const double *wa = w->weighted + a * J + from;
            double sum = 0;
            for (long s = 0; s < k; s++)
                cell[s * m + a] += NAME(dot)(lin->selected + s * lin->padded_rows + from, wa, n);
            for (long b = 0; b < m; b++)
                cell[k * m + a * m + b] += NAME(dot)(x + b * J + from, wa, n);
            for (long j = 0; j < n; j++)
                sum += wa[j];
            cell[k * m + m * m + a] += sum;
        }
    }
    for (long fold = 0; fold < lin->n_folds; fold++)
        for (long a = 0; a < m; a++)
            for (long q = 0; q < Q; q++)
                w->slopes[(fold * m + a) * Q + q] += NAME(dot)(x + a * J, lin->residual + (fold * Q + q) * J, J);
}

/* The new columns' part of one fold's regression: their slopes w, and what the residual columns need. */
static void NAME(fold_slopes)(const Linear *lin, const LinearWork *w, long fold)
{
    const long k = lin->n_selected, Q = lin->n_outputs, m = w->m;
    const double *cell = w->moments + (fold + 1) * w->cell, weight = lin->fold_weight[fold];
    const double *inverse = lin->inverse + fold * k * k, *mean_s = lin->means + fold * k;
    const double *sums = w->total + k * m + m * m, *own = cell + k * m + m * m;
    double *slopes = w->slopes + fold * m * Q, *mean = w->offsets + fold * (m + Q), largest = 0;
    for (long a = 0; a < m; a++)
        mean[a] = lin->intercept ? (sums[a] - own[a]) / weight : 0;
    for (long i = 0; i < k * m; i++)
        w->c[i] = w->total[i] - cell[i] - weight * mean_s[i / m] * mean[i % m];
    for (long i = 0; i < m * m; i++)
        w->D[i] = w->total[k * m + i] - cell[k * m + i] - weight * mean[i / m] * mean[i % m];
    for (long a = 0; a < m; a++) {
        largest = w->D[a * m + a] > largest ? w->D[a * m + a] : largest;
        w->D[a * m + a] += lin->ridge;
    }
    for (long s = 0; s < k; s++)
        for (long a = 0; a < m; a++) {
            double coefficient = 0; /* A = inverse c */
            for (long i = 0; i < k; i++)
                coefficient += inverse[s * k + i] * w->c[i * m + a];
            w->A[s * m + a] = coefficient;
            for (long b = 0; b < m; b++)
                w->D[b * m + a] -= w->c[s * m + b] * coefficient;
            mean[a] -= mean_s[s] * coefficient; /* from here on the mean of the residual column */
        }
    NAME(solve_small)(w->D, m, slopes, Q, 1e-14 * largest);
}

/* Columns of B for one fold: A where the m columns are pushed through X_S, A w where the Q outputs are. */
static void NAME(prepare_push)(const Linear *lin, const LinearWork *w, long fold)
{
    const long k = lin->n_selected, Q = lin->n_outputs, m = w->m;
    const double *slopes = w->slopes + fold * m * Q;
    double *offset = w->offsets + fold * (m + Q), *intercept = offset + m;
    for (long s = 0; s < k; s++) {
        double *row = w->B + s * w->height + fold * w->r;
        if (m <= Q)
            memcpy(row, w->A + s * m, m * sizeof(double));
        else
            for (long q = 0; q < Q; q++) {
                row[q] = 0;
                for (long a = 0; a < m; a++)
                    row[q] += w->A[s * m + a] * slopes[a * Q + q];
            }
    }
    for (long q = 0; q < Q; q++) {
        intercept[q] = 0;
        for (long a = 0; a < m; a++)
            intercept[q] += offset[a] * slopes[a * Q + q];
    }
}

/* From the sums over all rows to what the predictions need. */
static void NAME(linear_solve)(const Linear *lin, const LinearWork *w)
{
    memset(w->total, 0, w->cell * sizeof(double));
    for (long seg = 0; seg <= lin->n_folds; seg++)
        for (long i = 0; i < w->cell; i++)
            w->total[i] += w->moments[seg * w->cell + i];
    memset(w->B, 0, lin->n_selected * w->height * sizeof(double));
    for (long fold = 0; fold < lin->n_folds; fold++) {
        NAME(fold_slopes)(lin, w, fold);
        NAME(prepare_push)(lin, w, fold);
    }
}

/* Predictions from S + g for the m columns x (m x J), for each fold on all rows of the block: out is K x Q x J. */
static void NAME(linear_predictions)(const Linear *lin, const LinearWork *w, const double *x, double *out)
{
    const long J = lin->n_rows, Q = lin->n_outputs, rows = lin->padded_rows, m = w->m;
    memset(w->pushed, 0, w->height * rows * sizeof(double));
    NAME(cross_add)(w->B, w->height, w->height, lin->selected, rows, rows, lin->n_selected, w->pushed, rows);
    for (long fold = 0; fold < lin->n_folds; fold++)
        for (long q = 0; q < Q; q++) {
            const double *slopes = w->slopes + fold * m * Q + q, intercept = w->offsets[fold * (m + Q) + m + q];
            const double *pushed = w->pushed + fold * w->r * rows;
            double *y = out + (fold * Q + q) * J;
            const double *before = lin->prediction + (fold * Q + q) * J;
            if (m == 1) /* by far the most common case, in one pass */
                for (long j = 0; j < J; j++)
                    y[j] = before[j] - intercept + slopes[0] * (x[j] - pushed[j]);
            else {
                for (long j = 0; j < J; j++)
                    y[j] = before[j] - intercept - (m <= Q ? 0 : pushed[q * rows + j]);
                for (long a = 0; a < m; a++)
                    for (long j = 0; j < J; j++)
                        y[j] += slopes[a * Q] * (x[a * J + j] - (m <= Q ? pushed[a * rows + j] : 0));
            }
        }
}
#undef LinearWork
