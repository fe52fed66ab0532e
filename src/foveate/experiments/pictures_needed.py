"""How many pictures an observer must see for parameters that are known well enough.

The posterior's standard deviation falls with the number n of pictures, by theory as 1 / sqrt(n). A line through its
logarithm, from fits to fewer and more pictures, says how many bring it down to what is wanted.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

LEVEL = 0.95  # of the slope's interval

# A slope of log sd on log n needs numbers of pictures that differ by this factor; else it is taken from theory.
SMALLEST_RANGE, THEORY = 1.5, -0.5


class Line(NamedTuple):
    """log sd = intercept of the observer + slope log n; the slope's interval is NaN where it was not fitted."""

    intercept: Float[np.ndarray, " observer"]
    slope: float
    low: float
    high: float


def sd_line(pictures: Float[np.ndarray, "part observer"], sd: Float[np.ndarray, "part observer"]) -> Line:
    """The line of each observer through the posterior standard deviations of fits to so many pictures.

    The slope is the mean of the observers' own, with Student's interval of 95 %: subsets are nested, so the fits of an
    observer are not independent, and observers are.
    """
    x, y = np.log(pictures), np.log(sd)
    if np.ptp(x, axis=0).min() < np.log(SMALLEST_RANGE):
        slope, low, high = THEORY, np.nan, np.nan
    else:
        slopes = np.array([np.polyfit(*own, 1)[0] for own in zip(x.T, y.T, strict=True)])
        slope = float(slopes.mean())
        width = stats.t.ppf((1 + LEVEL) / 2, len(slopes) - 1) * stats.sem(slopes)
        low, high = slope - width, slope + width
    return Line(y.mean(axis=0) - slope * x.mean(axis=0), slope, float(low), float(high))


def pictures_needed(line: Line, sd: float) -> Float[np.ndarray, " observer"]:
    """How many pictures bring each observer's posterior standard deviation down to `sd`; infinite if none do."""
    if line.slope >= 0:
        return np.where(line.intercept <= np.log(sd), 1.0, np.inf)
    with np.errstate(over="ignore"):  # a slope of nearly zero
        return np.maximum(np.ceil(np.exp((np.log(sd) - line.intercept) / line.slope) - 1e-9), 1.0)


def needed_row(line: Line, pictures: Float[np.ndarray, "part observer"], precision: float) -> dict[str, Any]:
    """How many pictures are needed for one number of the model, for the median observer and for 90 % of them."""
    most, middle = int(pictures.max()), np.median(line.intercept, keepdims=True)
    half = float(pictures_needed(line._replace(intercept=middle), precision)[0])
    nine = float(np.quantile(pictures_needed(line, precision), 0.9, method="inverted_cdf"))
    return {
        "fewest_pictures_fitted": int(pictures.min()),
        "most_pictures_fitted": most,
        "slope": line.slope,
        "slope_low": line.low,
        "slope_high": line.high,
        "slope_fitted": bool(np.isfinite(line.low)),
        "log_sd_of_one_picture": float(middle[0]),
        "precision": precision,
        "pictures_median_observer": half,
        "pictures_90_percent": nine,
        "median_extrapolated": half > most,
        "90_percent_extrapolated": nine > most,
    }
