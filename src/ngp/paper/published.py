"""The paper's own figures, to print beside ours.

Das, Javid, Gohain, Eldar, Chatterjee, "Neural Greedy Pursuit for Feature Selection". What its tables call MSE is the
norm of the error over the number of samples (see `ngp.paper.metrics.paper_mse`).
"""

from __future__ import annotations

from typing import NamedTuple


class Regression(NamedTuple):
    """A row of table 1: means of ten runs."""

    fpsr: float
    fnsr: float
    f_mse: float | None = None
    f_nme: float | None = None
    p_mse: float | None = None
    p_nme: float | None = None


TABLE_1: dict[str, dict[str, Regression]] = {
    "artificial": {
        "ngp-ssfn": Regression(0.016, 0.00, 0.144, -11.93, 0.076, -12.01),
        "ngp-mlp": Regression(0.000, 0.02, 0.048, -10.95, 0.092, -10.57),
        "drop-one-out": Regression(0.038, 0.00),  # quoted from its own paper
        "correlation": Regression(0.990, 0.00),
        "lasso": Regression(0.959, 0.00, 0.173, -4.393, 0.170, -4.155),
        "random-forest": Regression(0.060, 0.18, 0.038, -18.98, 0.099, -10.53),
        "bart": Regression(0.991, 0.00, 0.114, -8.305, 0.132, -6.655),
        "gam": Regression(0.985, 0.00, 0.147, -5.841, 0.155, -6.167),
    },
    "boston": {
        "ngp-ssfn": Regression(0.120, 0.45, 0.244, -14.67, 0.382, -13.82),
        "ngp-mlp": Regression(0.280, 0.42, 0.543, -7.721, 0.764, -7.811),
        "correlation": Regression(0.884, 0.00),
        "lasso": Regression(0.717, 0.29, 0.289, -13.20, 0.467, -12.09),
        "random-forest": Regression(0.000, 0.55, 0.086, -23.71, 0.345, -14.72),
        "bart": Regression(0.892, 0.07, 0.614, -6.658, 0.889, -6.494),
        "gam": Regression(0.860, 0.00, 0.288, -13.24, 0.463, -12.16),
    },
}

# Table 2: accuracies in per cent on 1,000 training and 10,000 test digits with the best 40 % of the pixels.
TABLE_2: dict[str, tuple[float, float]] = {
    "ngp-ssfn": (93.33, 86.45),
    "ngp-cnn": (86.69, 86.25),
    "lasso": (74.83, 73.60),
    "random-forest": (87.26, 86.64),
    "bart": (78.27, 67.52),
    "deeplift": (70.14, 68.85),
}

# Figure 1: test accuracy in per cent by share of the pixels.
DIGITS_BY_SHARE: dict[float, float] = {0.08: 82.64, 0.16: 84.99, 0.24: 86.00, 0.32: 86.49, 0.40: 86.45}

# Figure 3: number of samples from which the average FNSR stays at 0.005 or below, about.
PHASE_CHANGE: dict[str, int] = {"planck": 130, "ohm": 220, "artificial": 250, "gravitation": 330}
# Figure 3: average FNSR of 100 runs, as listed in the authors' code.
CURVE_SIZES = tuple(range(50, 501, 10))
# fmt: off
FNSR_CURVES: dict[str, tuple[float, ...]] = {
    "planck": (
        0.095, 0.175, 0.115, 0.045, 0.02, 0.03, 0.065, 0.015, 0.02, 0.01, 0.01, 0.01, 0.01, 0.005, 0.01, 0,
        0.01, 0.01, 0, 0.01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0,
    ),
    "ohm": (
        0.155, 0.09, 0.07, 0.08, 0.05, 0.045, 0, 0.03, 0, 0.015, 0.03, 0, 0, 0.01, 0.02, 0, 0.01, 0.01, 0,
        0, 0.01, 0.005, 0, 0, 0, 0, 0, 0.01, 0.01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ),
    "artificial": (
        0.148, 0.066, 0.066, 0.07, 0.05, 0.03, 0.028, 0.032, 0.028, 0.026, 0.022, 0.024, 0.008, 0.018,
        0.014, 0.014, 0.016, 0.012, 0.006, 0.014, 0.002, 0.006, 0.004, 0.008, 0.004, 0.008, 0.006, 0.004,
        0.002, 0.004, 0.002, 0.006, 0.002, 0.004, 0.012, 0.002, 0.008, 0.002, 0.01, 0.006, 0.006, 0, 0.002,
        0, 0, 0.004,
    ),
    "gravitation": (
        0.2333, 0.24, 0.22, 0.17, 0.2033, 0.1767, 0.1267, 0.0967, 0.13, 0.0767, 0.08, 0.09, 0.0733, 0.0667,
        0.0533, 0.0433, 0.0333, 0.0267, 0.0367, 0.02, 0.05, 0.0267, 0.0167, 0.0367, 0.0333, 0.01, 0.0267,
        0.01, 0.0067, 0.0167, 0.0267, 0, 0, 0.0133, 0.0067, 0.0133, 0, 0.0067, 0.0067, 0.0067, 0.0067, 0, 0,
        0.0133, 0, 0.0033,
    ),
}
# fmt: on

# Figure 5(b): threshold η, where the text or the plot can be read: FPSR, FNSR.
ETA_RATES: dict[float, tuple[float | None, float]] = {
    0.01: (0.21, 0.02),
    0.02: (None, 0.0),
    0.03: (None, 0.0),
    0.04: (None, 0.0),
    0.05: (None, 0.02),
    0.10: (0.0, 0.08),
}

# Figure 5(c): test NME in dB with the first 1 to 5 features of an order.
RANK_NME: dict[str, tuple[float, ...]] = {
    "ngp": (-4.4, -7.1, -9.2, -10.9, -12.1),
    "random": (-3.3, -4.9, -6.7, -8.4, -11.9),
    "reversed": (-3.2, -4.6, -6.1, -7.7, -12.2),
}
