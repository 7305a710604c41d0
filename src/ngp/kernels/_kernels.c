/* The compiled hearts of the SSFN's and the MLP's scorers and of screening: their calls run without the GIL.
 *
 * The same code is compiled for several instruction sets, and the best one that the processor has is taken
 * when the module is imported. It needs GCC's vector extensions (GCC or Clang); where it can't be built,
 * ngp falls back to its numpy twin. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_task.h"

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

#if defined(__x86_64__)
#include <immintrin.h>
#define ISA avx512
#define VBYTES 64
#define MAX32 _mm512_max_ps
#define MAX64 _mm512_max_pd
#define SQRT32 _mm512_sqrt_ps
#define SQRT64 _mm512_sqrt_pd
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512")
#include "_isa.h"
#pragma GCC pop_options
#undef ISA
#undef VBYTES
#undef MAX32
#undef MAX64
#undef SQRT32
#undef SQRT64
#define ISA avx2
#define VBYTES 32
#define MAX32 _mm256_max_ps
#define MAX64 _mm256_max_pd
#define SQRT32 _mm256_sqrt_ps
#define SQRT64 _mm256_sqrt_pd
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "_isa.h"
#pragma GCC pop_options
#undef ISA
#undef VBYTES
#undef MAX32
#undef MAX64
#undef SQRT32
#undef SQRT64
#endif

#define ISA plain
#define VBYTES 16
#include "_isa.h"

typedef int (*Score)(const Task *);
typedef size_t (*Kept)(const Task *);
typedef int (*Train)(const Perceptron *);
typedef int (*Rank)(const Screen *);
static Score score_f32 = score_f32_plain, score_f64 = score_f64_plain;
static Kept kept_f32 = kept_bytes_f32_plain, kept_f64 = kept_bytes_f64_plain;
static Train perceptron_f32 = perceptron_f32_plain, perceptron_f64 = perceptron_f64_plain;
static Rank screen_f32 = screen_f32_plain;
static const char *instruction_set = "plain";
static int vector_bytes = 16;

static void choose(const char *wanted)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int any = !wanted || !*wanted;
    if ((any || !strcmp(wanted, "avx512")) && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma")) {
        score_f32 = score_f32_avx512, score_f64 = score_f64_avx512;
        kept_f32 = kept_bytes_f32_avx512, kept_f64 = kept_bytes_f64_avx512;
        perceptron_f32 = perceptron_f32_avx512, perceptron_f64 = perceptron_f64_avx512;
        screen_f32 = screen_f32_avx512;
        instruction_set = "avx512", vector_bytes = 64;
        return;
    }
    if ((any || !strcmp(wanted, "avx2")) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        score_f32 = score_f32_avx2, score_f64 = score_f64_avx2;
        kept_f32 = kept_bytes_f32_avx2, kept_f64 = kept_bytes_f64_avx2;
        perceptron_f32 = perceptron_f32_avx2, perceptron_f64 = perceptron_f64_avx2;
        screen_f32 = screen_f32_avx2;
        instruction_set = "avx2", vector_bytes = 32;
        return;
    }
#endif
    score_f32 = score_f32_plain, score_f64 = score_f64_plain;
    kept_f32 = kept_bytes_f32_plain, kept_f64 = kept_bytes_f64_plain;
    perceptron_f32 = perceptron_f32_plain, perceptron_f64 = perceptron_f64_plain;
    screen_f32 = screen_f32_plain;
    instruction_set = "plain", vector_bytes = 16;
}

/* Takes the buffers of a tuple of n arrays, of which those in the mask `written` must be writable; 0 after an error. */
static int take(PyObject *arrays, Py_buffer *view, int n, unsigned written)
{
    if (PyTuple_Size(arrays) != n) {
        PyErr_Format(PyExc_ValueError, "expected %d arrays", n);
        return 0;
    }
    for (int i = 0; i < n; i++)
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, i), view + i, written >> i & 1 ? PyBUF_WRITABLE : PyBUF_SIMPLE)) {
            while (i--)
                PyBuffer_Release(view + i);
            return 0;
        }
    return 1;
}

/* Gives them back; None, or an error if there was too little memory. */
static PyObject *give_back(Py_buffer *view, int n, int done)
{
    for (int i = 0; i < n; i++)
        PyBuffer_Release(view + i);
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

enum { SEGMENTS, SELECTED, MEANS, INVERSE, RESIDUAL, PREDICTION, WEIGHTS, FOLD_WEIGHT, COLUMNS, BASE,
       SLOT_WEIGHTS, TARGETS, OUT, N_ARRAYS };

/* score(arrays, sizes, flags, ridge, linear_ridge, phases, state): arrays in the order above, sizes (n_rows,
 * padded_rows, n_folds, n_outputs, n_selected, n_candidates, n_new, n_draws, n_hidden, base_width), flags (intercept,
 * weighted, single), phases as in _task.h, state as `make_state` made it, or None. */
#define SIZES "(llllllllll)(ppp)"
#define SIZES_OF(t, single)                                                                                     \
    &(t).linear.n_rows, &(t).linear.padded_rows, &(t).linear.n_folds, &(t).linear.n_outputs,                    \
        &(t).linear.n_selected, &(t).n_candidates, &(t).n_new, &(t).n_draws, &(t).n_hidden, &(t).base_width,    \
        &(t).linear.intercept, &(t).weighted, &(single)

static PyObject *score(PyObject *module, PyObject *args)
{
    PyObject *arrays, *state;
    Task t = {0};
    Linear *lin = &t.linear;
    int single;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!" SIZES "ddiO", &PyTuple_Type, &arrays, SIZES_OF(t, single), &t.ridge,
                          &lin->ridge, &t.phases, &state))
        return NULL;
    t.blocked = state != Py_None;
    if (t.blocked) {
        const size_t bytes = t.n_candidates * (single ? kept_f32 : kept_f64)(&t);
        if (!PyObject_TypeCheck(state, &PyByteArray_Type) || (size_t)PyByteArray_Size(state) != bytes)
            return PyErr_Format(PyExc_ValueError, "state must come from make_state, called with the same sizes");
        t.state = PyByteArray_AsString(state);
    }
    Py_buffer view[N_ARRAYS];
    if (!take(arrays, view, N_ARRAYS, 1u << OUT))
        return NULL;
    lin->segments = view[SEGMENTS].buf, lin->selected = view[SELECTED].buf, lin->means = view[MEANS].buf;
    lin->inverse = view[INVERSE].buf, lin->residual = view[RESIDUAL].buf, lin->weights = view[WEIGHTS].buf;
    lin->prediction = view[PREDICTION].buf, lin->fold_weight = view[FOLD_WEIGHT].buf;
    t.columns = view[COLUMNS].buf, t.base = view[BASE].buf, t.slot_weights = view[SLOT_WEIGHTS].buf;
    t.targets = view[TARGETS].buf, t.out = view[OUT].buf;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = (single ? score_f32 : score_f64)(&t);
    Py_END_ALLOW_THREADS
    return give_back(view, N_ARRAYS, done);
}

/* make_state(sizes, flags): what `score` keeps of a chunk of candidates from one block of rows to the next. */
static PyObject *make_state(PyObject *module, PyObject *args)
{
    Task t = {0};
    int single;
    (void)module;
    if (!PyArg_ParseTuple(args, SIZES, SIZES_OF(t, single)))
        return NULL;
    t.blocked = 1;
    const size_t bytes = t.n_candidates * (single ? kept_f32 : kept_f64)(&t);
    PyObject *state = PyByteArray_FromStringAndSize(NULL, bytes);
    if (state)
        memset(PyByteArray_AsString(state), 0, bytes);
    return state;
}

enum { INPUTS_OF_ROWS, TARGETS_OF_ROWS, PARAMETERS, ROWS_OF_STEPS, SHARES, JUDGED, OUTPUTS, N_TRAINED };

/* perceptron(arrays, sizes, rates, decay, loss, single): arrays in the order above, sizes (n_inputs, width,
 * n_outputs, n_steps, batch, n_judged), rates of the first and the output layer, loss as in _task.h. */
static PyObject *perceptron(PyObject *module, PyObject *args)
{
    PyObject *arrays;
    Perceptron t = {0};
    int single;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!(llllll)(dd)dip", &PyTuple_Type, &arrays, &t.n_inputs, &t.width, &t.n_outputs,
                          &t.n_steps, &t.batch, &t.n_judged, t.rates, t.rates + 1, &t.decay, &t.loss, &single))
        return NULL;
    Py_buffer view[N_TRAINED];
    if (!take(arrays, view, N_TRAINED, 1u << PARAMETERS | 1u << OUTPUTS))
        return NULL;
    t.inputs = view[INPUTS_OF_ROWS].buf, t.targets = view[TARGETS_OF_ROWS].buf, t.parameters = view[PARAMETERS].buf;
    t.rows = view[ROWS_OF_STEPS].buf, t.shares = view[SHARES].buf, t.judged = view[JUDGED].buf;
    t.out = view[OUTPUTS].buf;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = (single ? perceptron_f32 : perceptron_f64)(&t);
    Py_END_ALLOW_THREADS
    return give_back(view, N_TRAINED, done);
}

enum { SCREENED_COLUMNS, SCREEN_BASE, SHIFT, SCREEN_SLOTS, PLACES, RIDGE, GAINS, N_SCREENED };

/* screen(arrays, sizes): arrays in the order above, sizes (n_candidates, n_new, n_rows, n_outputs, n_params, width). */
static PyObject *screen(PyObject *module, PyObject *args)
{
    PyObject *arrays;
    Screen t = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!(llllll)", &PyTuple_Type, &arrays, &t.n_candidates, &t.n_new, &t.n_rows,
                          &t.n_outputs, &t.n_params, &t.width))
        return NULL;
    Py_buffer view[N_SCREENED];
    if (!take(arrays, view, N_SCREENED, 1u << GAINS))
        return NULL;
    t.columns = view[SCREENED_COLUMNS].buf, t.base = view[SCREEN_BASE].buf, t.shift = view[SHIFT].buf;
    t.slot_weights = view[SCREEN_SLOTS].buf, t.places = view[PLACES].buf, t.ridge = view[RIDGE].buf;
    t.out = view[GAINS].buf;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = screen_f32(&t);
    Py_END_ALLOW_THREADS
    return give_back(view, N_SCREENED, done);
}

/* current(): name and vector width in bytes of the instruction set in use. */
static PyObject *current(PyObject *module, PyObject *args)
{
    (void)module, (void)args;
    return Py_BuildValue("(si)", instruction_set, vector_bytes);
}

/* use(name): switches to an instruction set ("avx512", "avx2", "plain", "" for the best); returns what is in
 * use now. For tests: every path must agree with every other. */
static PyObject *use(PyObject *module, PyObject *args)
{
    const char *wanted;
    if (!PyArg_ParseTuple(args, "s", &wanted))
        return NULL;
    choose(wanted);
    return current(module, NULL);
}

/* Entry of a row of X at a byte offset, as double. */
static inline double entry(const char *at, int single)
{
    return single ? *(const float *)at : *(const double *)at;
}

/* Columns of X that are read together: a cache line of a row-major X. */
#define GATHERED 8

/* gather(X, rows, columns, mean, scale, bound, out): out[c, j] = (X[rows[j], columns[c]] - mean[c]) / scale[c], held
 * within +-bound. X is read from top to bottom, since its rows in fold order would miss the cache every time. */
static PyObject *gather(PyObject *module, PyObject *args)
{
    PyObject *objects[6];
    Py_buffer view[6];
    double bound;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOdO", objects, objects + 1, objects + 2, objects + 3, objects + 4, &bound,
                          objects + 5))
        return NULL;
    for (int i = 0; i < 6; i++) {
        const int flags = i == 0 ? PyBUF_STRIDED_RO | PyBUF_FORMAT : i == 5 ? PyBUF_WRITABLE : PyBUF_SIMPLE;
        if (PyObject_GetBuffer(objects[i], view + i, flags)) {
            while (i--)
                PyBuffer_Release(view + i);
            return NULL;
        }
    }
    const int64_t *rows = view[1].buf, *columns = view[2].buf;
    const double *mean = view[3].buf, *scale = view[4].buf;
    const long n_rows = view[1].len / 8, n_columns = view[2].len / 8, height = view[0].shape[0];
    const Py_ssize_t down = view[0].strides[0], right = view[0].strides[1];
    const int single = view[0].itemsize == 4;
    double *out = view[5].buf, *scaled = malloc(sizeof(double) * GATHERED * (height + 1));
    if (scaled) {
        Py_BEGIN_ALLOW_THREADS
        for (long first = 0; first < n_columns; first += GATHERED) {
            const long n = MIN(GATHERED, n_columns - first);
            for (long i = 0; i < height; i++) {
                const char *row = (const char *)view[0].buf + i * down;
                for (long c = 0; c < n; c++) {
                    const long at = first + c;
                    const double value = (entry(row + columns[at] * right, single) - mean[at]) / scale[at];
                    scaled[i * GATHERED + c] = value > bound ? bound : value < -bound ? -bound : value;
                }
            }
            for (long c = 0; c < n; c++)
                for (long j = 0; j < n_rows; j++)
                    out[(first + c) * n_rows + j] = scaled[rows[j] * GATHERED + c];
        }
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < 6; i++)
        PyBuffer_Release(view + i);
    if (!scaled)
        return PyErr_NoMemory();
    free(scaled);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"score", score, METH_VARARGS, "Out-of-fold predictions of a chunk of candidates."},
    {"make_state", make_state, METH_VARARGS, "What `score` keeps of candidates from block to block of rows."},
    {"perceptron", perceptron, METH_VARARGS, "Train a network with one hidden layer, and predict some rows."},
    {"screen", screen, METH_VARARGS, "How much of some residuals each of a chunk of candidates explains."},
    {"gather", gather, METH_VARARGS, "Standardised, clipped columns of a matrix, rows in a given order."},
    {"current", current, METH_NOARGS, "Name and vector width in bytes of the instruction set in use."},
    {"use", use, METH_VARARGS, "Choose the instruction set; returns its name and its vector width in bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void)
{
    choose("");
    return PyModule_Create(&definition);
}
