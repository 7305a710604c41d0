/* The linear part of the first layer: for each candidate and each fold, the ridge prediction from S + g.
 *
 * With the ridge state of S on a fold's training rows (inverse, means, residuals), adding the columns X_g
 * needs no new regression: with c = X_S^T W X_g and A = inverse c, the residual columns X_g - X_S A and
 * their small m x m system carry the rest. All of it in double: O(J k) operations beside the O(J n^2) of
 * the Gram product. Everything that runs over samples is stored with the samples contiguous.
 *
 * Included once for each instruction set, after _tiles.h for double. */

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

static long NAME(linear_scratch)(const Linear *lin, long m)
{
    const long k = lin->n_selected, K = lin->n_folds, Q = lin->n_outputs, r = m < Q ? m : Q;
    const long per_segment = k * m + m * m + m, height = (K * r + VW - 1) / VW * VW;
    return m * lin->n_rows + (K + 2) * per_segment + 2 * k * m + m * m + K * m * Q
         + K * (m > Q ? m : Q) + k * height + height * lin->padded_rows;
}

/* Predictions from S + g for the m columns x (m x J), for each fold on all rows: out is K x Q x J. */
static void NAME(linear_predictions)(const Linear *lin, const double *x, long m, double *scratch, double *out)
{
    const long J = lin->n_rows, k = lin->n_selected, K = lin->n_folds, Q = lin->n_outputs;
    const long r = m < Q ? m : Q; /* the cheaper side to push through X_S: the m columns or the Q outputs */
    const long per_segment = k * m + m * m + m, height = (K * r + VW - 1) / VW * VW;
    double *weighted = scratch, *moments = weighted + m * J, *total = moments + (K + 1) * per_segment;
    double *c = total + per_segment, *A = c + k * m, *D = A + k * m;
    double *slopes = D + m * m, *offsets = slopes + K * m * Q;
    double *B = offsets + K * (m > Q ? m : Q), *pushed = B + k * height;

    for (long a = 0; a < m; a++)
        for (long j = 0; j < J; j++)
            weighted[a * J + j] = lin->weights[j] * x[a * J + j];

    /* Second moments of the new columns with S, with each other and with one, a segment at a time. */
    memset(total, 0, per_segment * sizeof(double));
    for (long seg = 0; seg <= K; seg++) {
        const long from = lin->segments[seg], n = lin->segments[seg + 1] - from;
        double *cell = moments + seg * per_segment;
        for (long a = 0; a < m; a++) {
            const double *wa = weighted + a * J + from;
            for (long s = 0; s < k; s++)
                cell[s * m + a] = NAME(dot)(lin->selected + s * lin->padded_rows + from, wa, n);
            for (long b = 0; b < m; b++)
                cell[k * m + a * m + b] = NAME(dot)(x + b * J + from, wa, n);
            double sum = 0;
            for (long j = 0; j < n; j++)
                sum += wa[j];
            cell[k * m + m * m + a] = sum;
        }
        for (long i = 0; i < per_segment; i++)
            total[i] += cell[i];
    }

    memset(B, 0, k * height * sizeof(double));
    for (long fold = 0; fold < K; fold++) {
        const double *cell = moments + (fold + 1) * per_segment, weight = lin->fold_weight[fold];
        const double *inverse = lin->inverse + fold * k * k, *mean_s = lin->means + fold * k;
        const double *sums = total + k * m + m * m, *own = cell + k * m + m * m;
        double *w = slopes + fold * m * Q, *offset = offsets + fold * (m > Q ? m : Q);
        double largest = 0;
        for (long i = 0; i < k * m; i++) {
            const double mean = lin->centred ? (sums[i % m] - own[i % m]) / weight : 0;
            c[i] = total[i] - cell[i] - weight * mean_s[i / m] * mean;
        }
        for (long i = 0; i < m * m; i++) {
            const double a = lin->centred ? (sums[i / m] - own[i / m]) / weight : 0;
            const double b = lin->centred ? (sums[i % m] - own[i % m]) : 0;
            D[i] = total[k * m + i] - cell[k * m + i] - a * b;
            if (i / m == i % m && D[i] > largest)
                largest = D[i];
        }
        for (long a = 0; a < m; a++) {
            offset[a] = lin->centred ? (sums[a] - own[a]) / weight : 0;
            D[a * m + a] += lin->ridge;
            for (long q = 0; q < Q; q++)
                w[a * Q + q] = NAME(dot)(x + a * J, lin->residual + (fold * Q + q) * J, J);
        }
        for (long s = 0; s < k; s++)
            for (long a = 0; a < m; a++) {
                double coefficient = 0; /* A = inverse c */
                for (long t = 0; t < k; t++)
                    coefficient += inverse[s * k + t] * c[t * m + a];
                offset[a] -= mean_s[s] * coefficient;
                for (long b = 0; b < m; b++)
                    D[b * m + a] -= c[s * m + b] * coefficient;
                A[s * m + a] = coefficient;
            }
        NAME(solve_small)(D, m, w, Q, 1e-14 * largest);
        if (m <= Q)
            for (long s = 0; s < k; s++)
                memcpy(B + s * height + fold * r, A + s * m, m * sizeof(double));
        else {
            double intercepts[Q];
            for (long q = 0; q < Q; q++) {
                intercepts[q] = 0;
                for (long a = 0; a < m; a++)
                    intercepts[q] += offset[a] * w[a * Q + q];
                for (long s = 0; s < k; s++) {
                    double sum = 0;
                    for (long a = 0; a < m; a++)
                        sum += A[s * m + a] * w[a * Q + q];
                    B[s * height + fold * r + q] = sum;
                }
            }
            memcpy(offset, intercepts, Q * sizeof(double));
        }
    }

    memset(pushed, 0, height * lin->padded_rows * sizeof(double));
    NAME(cross_add)(B, height, height, lin->selected, lin->padded_rows, lin->padded_rows, k, pushed,
                    lin->padded_rows);
    for (long fold = 0; fold < K; fold++)
        for (long q = 0; q < Q; q++) {
            const long row = (fold * Q + q) * J;
            const double *w = slopes + fold * m * Q, *offset = offsets + fold * (m > Q ? m : Q);
            const double *P = pushed + fold * r * lin->padded_rows;
            double *y = out + row;
            memcpy(y, lin->prediction + row, J * sizeof(double));
            if (m <= Q)
                for (long a = 0; a < m; a++)
                    for (long j = 0; j < J; j++)
                        y[j] += w[a * Q + q] * (x[a * J + j] - offset[a] - P[a * lin->padded_rows + j]);
            else {
                for (long a = 0; a < m; a++)
                    for (long j = 0; j < J; j++)
                        y[j] += w[a * Q + q] * x[a * J + j];
                for (long j = 0; j < J; j++)
                    y[j] -= P[q * lin->padded_rows + j] + offset[q];
            }
        }
}
