/* Perceptrons with one hidden layer of ReLU units, trained by Adam, one at a time and each within the cache.
 *
 * Parameters are rows of `width` units: one row an input, then the biases of the units, then one row an output; after
 * them the biases of the outputs. `width` is a multiple of the vector length, and units beyond the real ones are zero
 * and stay so.
 *
 * Included once for each (scalar type, instruction set), after _tiles.h. */

#define ROWS 4                          /* samples that go side by side through the layer */
#define INPUTS 8                        /* inputs whose weights are updated together */
#define UNITS (VBYTES == 64 ? 4 : 2)    /* vectors of units that go side by side */

static inline vec NAME(root)(vec v)
{
#ifdef VSQRT
    return VSQRT(v);
#else
    for (int i = 0; i < VW; i++)
        v[i] = SQRT(v[i]);
    return v;
#endif
}

typedef struct {
    REAL rate, kept, root_scale; /* of the step: rate / (1 - beta1^t), 1 - rate * decay, 1 / sqrt(1 - beta2^t) */
} NAME(Pace);
#define Pace NAME(Pace)

#define BETA1 ((REAL)0.9)
#define BETA2 ((REAL)0.999)
#define TINY ((REAL)1e-8)

/* One vector of parameters, from its gradient; mean and square are Adam's running averages. */
static inline void NAME(adam)(const Pace *pace, REAL *parameter, REAL *mean, REAL *square, vec gradient)
{
    vec *p = (vec *)parameter, *m = (vec *)mean, *v = (vec *)square;
    *m += (1 - BETA1) * (gradient - *m);
    *v = BETA2 * *v + (1 - BETA2) * gradient * gradient;
    *p = *p * pace->kept - pace->rate * *m / (NAME(root)(*v) * pace->root_scale + TINY);
}

static inline REAL NAME(adam_one)(const Pace *pace, REAL p, REAL *m, REAL *v, REAL gradient)
{
    *m += (1 - BETA1) * (gradient - *m);
    *v = BETA2 * *v + (1 - BETA2) * gradient * gradient;
    return p * pace->kept - pace->rate * *m / (SQRT(*v) * pace->root_scale + TINY);
}

/* Hidden units of n <= ROWS samples, for `units` vectors of them. */
static inline __attribute__((always_inline)) void NAME(units)(
    const Perceptron *t, const REAL *weights, const REAL *const *x, REAL *hidden, const int n, const int units)
{
    const long width = t->width, n_inputs = t->n_inputs;
    vec z[ROWS][UNITS];
    for (int u = 0; u < units; u++) {
        const vec bias = *(const vec *)(weights + n_inputs * width + u * VW);
        for (int r = 0; r < n; r++)
            z[r][u] = bias;
    }
    for (long k = 0; k < n_inputs; k++)
        for (int u = 0; u < units; u++) {
            const vec w = *(const vec *)(weights + k * width + u * VW);
            for (int r = 0; r < n; r++)
                z[r][u] += x[r][k] * w;
        }
    for (int r = 0; r < n; r++)
        for (int u = 0; u < units; u++)
            *(vec *)(hidden + r * width + u * VW) = NAME(relu)(z[r][u]);
}

static inline __attribute__((always_inline)) void NAME(layer)(
    const Perceptron *t, const REAL *weights, const REAL *const *x, REAL *hidden, const int n)
{
    long c = 0;
    for (; c + UNITS * VW <= t->width; c += UNITS * VW)
        NAME(units)(t, weights + c, x, hidden + c, n, UNITS);
    for (; c < t->width; c += VW)
        NAME(units)(t, weights + c, x, hidden + c, n, 1);
}

/* Hidden units (n x width) and outputs (n x Q) of some rows. */
static void NAME(forward)(
    const Perceptron *t, const REAL *parameters, const int64_t *rows, long n, REAL *hidden, REAL *outputs)
{
    const long width = t->width, Q = t->n_outputs;
    const REAL *x[ROWS], *out_weights = parameters + (t->n_inputs + 1) * width, *out_bias = out_weights + Q * width;
    for (long b = 0; b < n; b += ROWS) {
        const int some = (int)MIN(ROWS, n - b);
        for (int r = 0; r < some; r++)
            x[r] = (const REAL *)t->inputs + rows[b + r] * t->n_inputs;
        if (some == ROWS)
            NAME(layer)(t, parameters, x, hidden + b * width, ROWS);
        else
            for (int r = 0; r < some; r++)
                NAME(layer)(t, parameters, x + r, hidden + (b + r) * width, 1);
    }
    for (long b = 0; b < n; b++)
        for (long q = 0; q < Q; q++) {
            vec sum = {0};
            for (long c = 0; c < width; c += VW)
                sum += *(const vec *)(hidden + b * width + c) * *(const vec *)(out_weights + q * width + c);
            outputs[b * Q + q] = NAME(lane_sum)(sum) + out_bias[q];
        }
}

/* Outputs of one sample to the derivatives of its loss by them. */
static void NAME(derivatives)(const Perceptron *t, const REAL *target, REAL share, REAL *y)
{
    const long Q = t->n_outputs;
    if (t->loss == SQUARED_ERROR) {
        for (long q = 0; q < Q; q++)
            y[q] = (y[q] - target[q]) * (2 * share / Q);
    } else if (t->loss == CROSS_ENTROPY && Q == 1) {
        y[0] = (REAL)(1 / (1 + exp(-(double)y[0])) - target[0]) * share;
    } else if (t->loss == CROSS_ENTROPY) {
        REAL largest = y[0];
        double sum = 0;
        for (long q = 1; q < Q; q++)
            largest = y[q] > largest ? y[q] : largest;
        for (long q = 0; q < Q; q++)
            sum += exp((double)(y[q] - largest));
        for (long q = 0; q < Q; q++)
            y[q] = (REAL)(exp((double)(y[q] - largest)) / sum - target[q]) * share;
    } else if (Q == 1) { /* hinge: one column p stands for the two columns 1 - p and p */
        const REAL sign = 2 * target[0] - 1;
        y[0] = isnan(y[0]) ? y[0] : sign * (2 * y[0] - 1) < 1 ? -2 * sign * share : 0;
    } else { /* hinge of the margin between the true class and the best other one */
        long own = 0, rival = -1;
        for (long q = 0; q < Q; q++)
            if (target[q] > 0)
                own = q;
        for (long q = 0; q < Q; q++)
            if (q != own && (rival < 0 || y[q] > y[rival]))
                rival = q;
        const int pays = y[own] - y[rival] < 1;
        for (long q = 0; q < Q; q++)
            y[q] = isnan(y[q]) ? y[q] : !pays ? 0 : q == own ? -share : q == rival ? share : 0;
    }
}

/* Gradients of the weights of `n` inputs for `units` vectors of units, and Adam's step. */
static inline __attribute__((always_inline)) void NAME(update_inputs)(
    const Perceptron *t, const Pace *pace, const REAL *const *x, long k, const REAL *slopes, REAL *weights, REAL *mean,
    REAL *square, const int n, const int units)
{
    vec sum[INPUTS][2];
    for (int i = 0; i < n; i++)
        for (int u = 0; u < units; u++)
            sum[i][u] = (vec){0};
    for (long b = 0; b < t->batch; b++)
        for (int u = 0; u < units; u++) {
            const vec slope = *(const vec *)(slopes + (b * units + u) * VW);
            for (int i = 0; i < n; i++)
                sum[i][u] += x[b][k + i] * slope;
        }
    for (int i = 0; i < n; i++)
        for (int u = 0; u < units; u++) {
            const long at = (k + i) * t->width + u * VW;
            NAME(adam)(pace, weights + at, mean + at, square + at, sum[i][u]);
        }
}

/* Backward pass and Adam's step for `units` vectors of units; nothing is kept of the gradients. */
static inline __attribute__((always_inline)) void NAME(update_units)(
    const Perceptron *t, const Pace *pace, const REAL *const *x, const REAL *errors, const REAL *hidden, REAL *weights,
    REAL *mean, REAL *square, REAL *slopes, const int units)
{
    const long width = t->width, Q = t->n_outputs, n_inputs = t->n_inputs, out = (n_inputs + 1) * width;
    for (int u = 0; u < units; u++) {
        vec total = {0};
        for (long b = 0; b < t->batch; b++) {
            vec slope = {0};
            for (long q = 0; q < Q; q++)
                slope += errors[b * Q + q] * *(const vec *)(weights + out + q * width + u * VW);
            const vec h = *(const vec *)(hidden + b * width + u * VW);
            slope = (vec)((ivec)slope & (h > (vec){0}));
            *(vec *)(slopes + (b * units + u) * VW) = slope;
            total += slope;
        }
        const long bias = n_inputs * width + u * VW;
        NAME(adam)(pace, weights + bias, mean + bias, square + bias, total);
        for (long q = 0; q < Q; q++) {
            vec sum = {0};
            for (long b = 0; b < t->batch; b++)
                sum += errors[b * Q + q] * *(const vec *)(hidden + b * width + u * VW);
            const long at = out + q * width + u * VW;
            NAME(adam)(pace + 1, weights + at, mean + at, square + at, sum);
        }
    }
    long k = 0;
    for (; k + INPUTS <= n_inputs; k += INPUTS)
        NAME(update_inputs)(t, pace, x, k, slopes, weights, mean, square, INPUTS, units);
    for (; k + 2 <= n_inputs; k += 2)
        NAME(update_inputs)(t, pace, x, k, slopes, weights, mean, square, 2, units);
    for (; k < n_inputs; k++)
        NAME(update_inputs)(t, pace, x, k, slopes, weights, mean, square, 1, units);
}

/* Trains `parameters` in place, then writes the outputs of the judged rows. Returns 0 without memory. */
static int NAME(perceptron)(const Perceptron *t)
{
    const long width = t->width, Q = t->n_outputs, n_weights = (t->n_inputs + 1 + Q) * width, size = n_weights + Q;
    REAL *parameters = t->parameters, *mean = calloc(2 * size + t->batch * (width + Q + 2 * VW), sizeof(REAL));
    const REAL **x = malloc(sizeof(*x) * t->batch);
    if (!mean || !x) {
        free(mean), free(x);
        return 0;
    }
    REAL *square = mean + size, *hidden = square + size, *outputs = hidden + t->batch * width;
    REAL *slopes = outputs + t->batch * Q;
    for (long step = 0; step < t->n_steps; step++) {
        const int64_t *rows = t->rows + step * t->batch;
        NAME(forward)(t, parameters, rows, t->batch, hidden, outputs);
        for (long b = 0; b < t->batch; b++) {
            x[b] = (const REAL *)t->inputs + rows[b] * t->n_inputs;
            NAME(derivatives)(t, (const REAL *)t->targets + rows[b] * Q,
                              ((const REAL *)t->shares)[step * t->batch + b], outputs + b * Q);
        }
        Pace pace[2]; /* of the first layer, of the output layer */
        for (int i = 0; i < 2; i++) {
            const double rate = t->rates[i] * (1 - (double)step / t->n_steps);
            pace[i].rate = (REAL)(rate / (1 - pow(0.9, step + 1.0)));
            pace[i].kept = (REAL)(1 - rate * t->decay);
            pace[i].root_scale = (REAL)(1 / sqrt(1 - pow(0.999, step + 1.0)));
        }
        long c = 0;
        for (; c + 2 * VW <= width; c += 2 * VW)
            NAME(update_units)(t, pace, x, outputs, hidden + c, parameters + c, mean + c, square + c, slopes, 2);
        for (; c < width; c += VW)
            NAME(update_units)(t, pace, x, outputs, hidden + c, parameters + c, mean + c, square + c, slopes, 1);
        for (long q = 0; q < Q; q++) {
            REAL sum = 0;
            for (long b = 0; b < t->batch; b++)
                sum += outputs[b * Q + q];
            const long at = n_weights + q;
            parameters[at] = NAME(adam_one)(pace + 1, parameters[at], mean + at, square + at, sum);
        }
    }
    for (long first = 0; first < t->n_judged; first += t->batch)
        NAME(forward)(t, parameters, t->judged + first, MIN(t->batch, t->n_judged - first), hidden,
                      (REAL *)t->out + first * Q);
    free(mean), free(x);
    return 1;
}

#undef ROWS
#undef INPUTS
#undef UNITS
#undef Pace
#undef BETA1
#undef BETA2
#undef TINY
