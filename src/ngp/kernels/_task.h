/* What a call of the scorer works on: a block of rows, in fold order; all arrays are C-contiguous. */

typedef struct {
    long n_rows;               /* J */
    long padded_rows;          /* J rounded up to a multiple of 8: the row length of `selected` */
    long n_folds;              /* K */
    const int64_t *segments;   /* K + 2 bounds in the block: the rows that always train, then the folds */
    long n_outputs;            /* Q */
    long n_selected;           /* k columns in S */
    const double *selected;    /* k x padded_rows, zero beyond J */
    const double *means;       /* K x k means over the training rows of each fold (zeros without intercept) */
    const double *inverse;     /* K x k x k, inverse of (X_S^T W X_S + ridge I) on the centred training rows */
    const double *residual;    /* K x Q x J weighted residuals W (T - Y_S) on training rows, zero elsewhere */
    const double *prediction;  /* K x Q x J ridge predictions Y_S, on all rows */
    const double *weights;     /* J sample weights */
    const double *fold_weight; /* K sums of the training weights, over all blocks */
    double ridge;
    int intercept;             /* whether the regressions have one */
} Linear;

typedef struct {
    Linear linear;            /* sizes, folds, weights and the state of the linear part */
    long n_candidates;
    long n_new;               /* m new columns of each candidate */
    const double *columns;    /* n_candidates x m x J */
    long n_draws;
    long n_hidden;            /* H */
    long base_width;          /* H rounded up to whole vectors */
    const void *base;         /* n_draws x J x base_width pre-activations from S, bias included */
    const void *slot_weights; /* n_draws x m x base_width random weights of the new columns */
    const void *targets;      /* J x Q */
    int weighted;             /* whether sample weights differ from one */
    double ridge;
    void *out;                /* n_candidates x J x Q: means over the draws */
    int phases;               /* what is done with these rows, see below */
    int blocked;              /* whether this is one block of several */
    char *state;              /* then what is kept of every candidate between calls, all zero before the first */
} Task;

/* Candidates go through these phases; the first, the third and the last need all rows, a block of them a call. A call
 * may be of several phases, and where one block holds all rows, of all. */
enum { LINEAR_SUMS = 1, LINEAR_SOLVE = 2, LAYER_START = 4, LAYER_SUMS = 8, LAYER_SOLVE = 16, PREDICT = 32 };

/* Rows that are filled and multiplied together: they stay in the second-level cache, and there are enough of them
 * for the Gram matrix, which is read and written once a block, not to count. */
#define BLOCK_ROWS 192
/* Rows that stay in the first-level cache while their linear units are written, or they are predicted. */
#define CACHED_ROWS 32
/* Rows whose mean the hidden units are shifted by. */
#define SHIFT_ROWS 64

/* Candidates that are worked on together once `base` has outgrown the second-level cache. */
#define GROUP_SIZE 4
#define GROUP_FROM_BYTES 400e3

/* For what would run a tenth slower as part of its caller, which has more variables than registers. */
#define APART __attribute__((noinline))

/* Under AddressSanitizer (make sanitize), buffers in one stretch of memory have bytes between them that nothing may
 * touch. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define GAP 64
#define FORBID(from, bytes) __asan_poison_memory_region(from, bytes)
#define ALLOW(from, bytes) __asan_unpoison_memory_region(from, bytes)
#else
#define GAP 0
#define FORBID(from, bytes) ((void)0)
#define ALLOW(from, bytes) ((void)0)
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

enum { SQUARED_ERROR, CROSS_ENTROPY, HINGE };

/* A network with one hidden layer to be trained; see _perceptron.h. Arrays of floats or doubles, rows contiguous. */
typedef struct {
    long n_inputs, width, n_outputs, n_steps, batch, n_judged;
    int loss;
    double rates[2], decay;
    const void *inputs, *targets;  /* J x n_inputs, J x n_outputs */
    const int64_t *rows, *judged;  /* n_steps x batch, n_judged: rows of them */
    const void *shares;            /* n_steps x batch: of the rows in the loss of their batch */
    void *parameters;              /* start, and the trained ones in the end */
    void *out;                     /* n_judged x n_outputs */
} Perceptron;

/* Candidates to be ranked by what they explain; see _screen.h. All arrays but `out` are of floats. */
typedef struct {
    long n_candidates, n_new, n_rows, n_outputs; /* m = n_new columns each, J rows, Q residuals */
    long n_params;                               /* of the regression; the residuals follow them in a row */
    long width;                                  /* of a row, padded */
    const void *columns;                         /* n_candidates x m x J */
    const void *base, *shift;                    /* J x width */
    const void *slot_weights, *places;           /* m x width */
    const void *ridge;                           /* n_params */
    double *out;                                 /* n_candidates */
} Screen;

/* Candidates that are screened together. */
#define SCREENED 16
