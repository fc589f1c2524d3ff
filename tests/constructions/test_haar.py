"""The Haar layer against PyWavelets and integers; the theorem's bases against quadrature.

Corollary 1 against numerical projections.
"""

from fractions import Fraction
from math import pi

import numpy as np
import pytest
import pywt
from scipy.integrate import quad

from compiler.artifact.numeric import numeric_stack
from compiler.artifact.package import bare_sizes
from compiler.driver import compile
from constructions.selectivity import approximation_rate
from constructions.selectivity.approximation_rate import (
    MOST_BASES,
    PiecewiseConstant,
    fourier_errors,
    haar_energies,
    mamba_errors,
    most_bases,
    rate_report,
    slopes,
)
from constructions.selectivity.haar import Haar, build_haar, haar_matrix, haar_pyramid, haar_report, orthonormal_factors
from constructions.selectivity.haar_bases import (
    approximation,
    basis,
    error_bound,
    exact_slope,
    grid_error,
    jumps,
    measured_error,
    neighbourhood,
    theorem_report,
    wavelet,
)

FORMS = ("steps", "bumps")


def by_pywavelets(samples):
    return np.concatenate(pywt.wavedec(samples, "haar", mode="periodization", axis=1), axis=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5, 6])
def test_integers_are_transformed_exactly(levels, form):
    layer = build_haar(levels, form, orthonormal=False)
    top = 2 ** (21 - levels)
    rng = np.random.default_rng(levels)
    samples = np.concatenate(
        [rng.integers(-top, top + 1, (8, layer.length)), top * haar_matrix(levels), -top * haar_matrix(levels)]
    )
    assert np.array_equal(layer(samples), samples @ haar_matrix(levels).T)


@pytest.mark.parametrize("form, ulps", [("steps", 4), ("bumps", 1)])
@pytest.mark.parametrize("levels, arch", [*((n, "mamba") for n in (1, 3, 5, 6)), (1, "mamba2"), (4, "mamba2")])
def test_the_orthonormal_transform_is_that_of_pywavelets(levels, arch, form, ulps):
    """To float32 rounding of sums of T terms, whatever the size of the samples; on Mamba-2 too (Remark 1)."""
    layer = build_haar(levels, form, arch=arch)
    rng = np.random.default_rng(levels)
    samples = rng.standard_normal((24, layer.length)) * 10.0 ** rng.integers(-37, 23, (24, 1))
    samples = np.float32(samples).astype(np.float64)
    error = np.abs(layer(samples) - by_pywavelets(samples)).max(axis=1)
    allowed = ulps * 2.0**-23 * np.abs(samples).sum(axis=1) * 2 ** (-levels / 2) * 2
    assert (error <= allowed).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_report(form):
    report = haar_report(5, form, samples=32)
    assert report["integers_exact"] and report["largest_error"] < 2e-7
    assert report["sizes"]["d_inner"] == 3 * 2**5 + (2 if form == "steps" else 3)


def test_the_pyramid_is_that_of_pywavelets():
    samples = np.random.default_rng(0).standard_normal((5, 64))
    np.testing.assert_allclose(haar_pyramid(samples), by_pywavelets(samples), atol=1e-12)


def test_sizes():
    """The theorem's form: 3T + 2 channels, N = 1, dt_rank T, one block, whatever is transformed."""
    for levels in (1, 4, 6):
        (size,) = bare_sizes(build_haar(levels).compiled)
        length = 2**levels
        assert (size.d_inner, size.d_state, size.dt_rank) == (3 * length + 2, 1, length)


def test_rows_of_the_matrix_are_the_wavelets():
    levels, length = 4, 16
    centres = (np.arange(length) + 0.5) / length
    rows = [wavelet(centres, j, k) for j in range(levels) for k in range(2**j)]
    ours = orthonormal_factors(levels)[1:, None] * haar_matrix(levels)[1:]
    np.testing.assert_allclose(ours, np.array(rows) / np.sqrt(length), rtol=1e-6)


def test_what_is_refused():
    with pytest.raises(ValueError, match="levels = 0"):
        build_haar(0)
    with pytest.raises(ValueError, match="form 'ramps'"):
        build_haar(2, "ramps")
    layer = build_haar(2)
    with pytest.raises(ValueError, match="shape"):
        layer(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="holds"):
        layer(np.full((1, 4), 2.0**81))


@pytest.mark.parametrize("slope", [3.0, 40.0])
@pytest.mark.parametrize("at", [0.0, 0.3, 1.0])
def test_the_closed_form_is_the_integral(slope, at):
    for s in (0.0, 0.2, 0.3, 0.7, 1.0):
        integral, _ = quad(lambda r: np.logaddexp(0, -slope * (r - at)), s, 1, epsabs=1e-12)
        assert basis(np.array(s), at, slope) == pytest.approx(np.exp(-integral), abs=1e-9)


@pytest.mark.parametrize("j, k", [(0, 0), (1, 1), (2, 1), (5, 31)])
def test_theorem_1_outside_the_neighbourhoods(j, k):
    errors = []
    for slope in (300.0, 1e4, 1e6):
        error = measured_error(j, k, slope)
        assert error <= error_bound(slope, j)
        errors.append(error)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


@pytest.mark.parametrize("j, k, slope", [(0, 0, 1e4), (2, 1, 1e4), (0, 0, 1e6), (2, 1, 1e6), (5, 31, 1e6)])
def test_theorem_1_is_half_reached_at_the_edges_of_the_neighbourhoods(j, k, slope):
    """√(2 ln a / a) before the middle jump its own basis is e^(−ln a) = 1/a too high, twice and at height 2^(j/2), and
    the others are exact to less than that: half of the bound, which has 1 + 2 + 1 in the place of 2.
    """
    edge = np.array([jumps(j, k)[1] - neighbourhood(slope)])
    off = float(np.abs(approximation(edge, j, k, slope) - wavelet(edge, j, k))[0])
    assert off * slope == pytest.approx(2 * 2 ** (j / 2), rel=0.03)
    assert error_bound(slope, j) == pytest.approx((1 + 2 + 1) * 2 ** (j / 2) / slope)
    assert 0.45 <= off / error_bound(slope, j) <= 0.55
    assert measured_error(j, k, slope) == pytest.approx(off, rel=0.05)  # which no grid would meet


def test_the_neighbourhood_cannot_be_left_out():
    """At the middle of the last neighbourhood the error is of the order of the wavelet, however large the slope is."""
    for slope in (1e3, 1e6):
        s = np.array([jumps(0, 0)[1] - 0.2 / np.sqrt(slope)])
        assert abs(approximation(s, 0, 0, slope) - wavelet(s, 0, 0)) > 1 and 0.2 / np.sqrt(slope) < neighbourhood(slope)


@pytest.mark.parametrize("j, k, bins", [(0, 0, 2), (2, 1, 8), (2, 3, 64), (4, 9, 256)])
def test_theorem_1_on_the_grid(j, k, bins):
    for factor in (1, 1.7, 10, 1e4):
        assert grid_error(j, k, factor * exact_slope(bins), bins) == 0
    if j:  # a start at 0 has no bin before it, and one beside a 1 hides what is small
        assert grid_error(j, k, 0.82 * exact_slope(bins), bins) > 0


def test_the_report_is_plain():
    rows = theorem_report()["rows"]
    assert all(row["error"] <= row["bound"] for row in rows)
    assert [row["grid_error"] for row in rows if row["slope"] >= exact_slope(64)] == [0.0] * 3


FUNCTIONS = [(["1/3"], [1, -1]), (["1/3", "0.7"], [0, 1, "1/2"]), (["1/7", "1/3", "5/7"], [1, 0, 2, -1])]


@pytest.mark.parametrize("breaks, values", FUNCTIONS)
def test_corollary_1(breaks, values):
    report = rate_report(breaks, values)
    assert report["slopes"]["mamba"] == pytest.approx(report["corollary"]["mamba"], rel=0.05)
    assert report["slopes"]["s4d"] == pytest.approx(report["corollary"]["s4d"], rel=0.1)
    assert report["mamba_squared_error"][-1] < 1e-3 * report["s4d_squared_error"][-1]


def test_errors_by_projection():
    """The same errors from samples: least squares on a fine grid."""
    function = PiecewiseConstant.of(["1/3"], [1, -1])
    size = 3 * 2**12
    s = (np.arange(size) + 0.5) / size
    rho = np.where(s < 1 / 3, 1.0, -1.0)
    assert len(haar_energies(function, scales=5)) == 5
    columns = [np.ones(size)]
    for j in range(4):
        columns.append(np.where(np.floor(s * 2**j) == np.floor(2**j / 3), wavelet(s, j, int(2**j / 3)), 0))
    for kept in (1, 3, 5):
        residual = rho - np.array(columns[:kept]).T @ np.linalg.lstsq(np.array(columns[:kept]).T, rho, rcond=None)[0]
        assert mamba_errors(function, 20)[3 * (kept - 1)] == pytest.approx((residual**2).mean(), rel=1e-3)
    waves = np.abs(np.fft.fft(rho) / size) ** 2
    for n in (1, 4, 9):
        assert fourier_errors(function, 20)[n - 1] == pytest.approx(1 - np.sort(waves)[::-1][:n].sum(), rel=2e-3)


def test_a_dyadic_jump_ends_the_series():
    function = PiecewiseConstant.of([Fraction(3, 8)], [0, 1])
    assert mamba_errors(function, 20)[-1] == 0
    with pytest.raises(ValueError, match="breaks = 3/8: a jump at 3/8 is the sum of a few wavelets.*power of two"):
        slopes(function, 40)
    with pytest.raises(ValueError, match="rise"):
        PiecewiseConstant.of([0.5, 0.25], [0, 1, 2])


@pytest.mark.parametrize(
    ("at", "bases", "cause"),
    [
        (Fraction(1, 3), 17, "17 bases are too few: the error of these breaks settles after 18"),
        (Fraction(1, 2), 17, "17 bases are too few"),
        (Fraction(1, 2), 120, "its error ends at 0"),
        (Fraction(1, 2) + Fraction(1, 3 << 45), 120, "falls to 2.−40 of the first before it settles"),
    ],
)
def test_a_series_without_a_rate_says_why(at: Fraction, bases: int, cause: str):
    with pytest.raises(ValueError, match=cause) as refused:
        slopes(PiecewiseConstant.of([at], [0, 1]), bases)
    assert ("too few" in str(refused.value)) == (bases == 17)


def test_too_few_bases_for_both_rates_are_refused():
    """18 were named as enough, and then said not to agree with the corollary."""
    with pytest.raises(ValueError, match="bases = 18 are too few to show both rates of these breaks; the least is 180"):
        rate_report(["1/3"], [0, 1], 18)


@pytest.mark.parametrize("values", [["0", "1e160"], ["0", "1e400"], ["2e140", "1"], ["0", "1e-141"]])
def test_values_whose_squares_are_no_floats_are_refused(values):
    with pytest.raises(ValueError, match=f"values = {values[0]}, {values[1]}: each must be within ±1e140"):
        rate_report(["0.3"], values)


@pytest.mark.parametrize("values", [[0, "1e140"], [0, "1e-140"], [10**18, 10**18 + 1], [-1, 0], [100, 99]])
def test_the_rates_are_those_of_the_jumps_whatever_their_size_and_place(values):
    report, plain = rate_report(["0.3"], values), rate_report(["0.3"], [0, 1])
    assert report["slopes"] == pytest.approx(plain["slopes"], rel=1e-6)


def test_so_many_jumps_that_no_number_of_bases_shows_them_are_refused():
    breaks = [Fraction(i, 912) for i in range(1, 912)]
    with pytest.raises(ValueError, match="apart, from 0 and 1 too, and at most 910"):
        rate_report(breaks, [i % 2 for i in range(912)])


@pytest.mark.parametrize("bases", [MOST_BASES + 1, 131_074, 10**9])
def test_more_bases_than_are_computed_are_refused_at_once(bases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 70,000 on the rates drifted, for the frequencies that are computed ended; from 131,074 on they were none."""
    monkeypatch.setattr(approximation_rate, "_fourier_series", None)  # no work is begun
    with pytest.raises(ValueError, match=f"bases = {bases:,} are more than the 65,536 that are computed"):
        rate_report(["1/3"], [0, 1], bases)


def test_the_most_bases_still_show_the_rates() -> None:
    assert rate_report(["1/3"], [0, 1], MOST_BASES)["slopes"]["s4d"] == pytest.approx(-1, abs=0.01)


def test_bases_that_would_need_frequencies_beyond_those_computed_are_refused() -> None:
    """Of forty equal steps only every twentieth frequency counts, so that those computed end soon."""
    breaks, values = [Fraction(i, 40) for i in range(1, 40)], [i % 2 for i in range(40)]
    function = PiecewiseConstant.of(breaks, values)
    most = most_bases(function)
    assert 2**21 // 40 - 100 < most < MOST_BASES
    of_pairs = (2 / (pi * (2 * k + 1)) ** 2 for k in range(most // 2))  # the frequencies ±20·(2k + 1)
    exact = 1 / 4 - sum(of_pairs)  # a half, of which the mean has half
    assert fourier_errors(function, most)[-1] == pytest.approx(exact, rel=0.02)
    with pytest.raises(ValueError, match=f"at most {most:,} are possible"):
        rate_report(breaks, values, most + 1)


@pytest.mark.parametrize("form", ["steps", "bumps"])
def test_remark_1_on_mamba2(form: str) -> None:
    """The ±1 transform of integers on real Mamba-2 blocks: two of them, exact."""
    compiled = compile(Haar(2, form, orthonormal=False).circuit(), "mamba2")
    samples = np.random.default_rng(0).integers(-1000, 1001, (16, 4)).astype(float)
    given = numeric_stack(compiled).run({"x": samples[..., None]})[:, -1]
    assert len(compiled.blocks) == 2 and np.array_equal(given, samples @ haar_matrix(2).T)


def test_an_error_at_no_point_is_refused():
    """The last jump is at 1: at a slope of 10 every point is near it or near another."""
    with pytest.raises(ValueError, match="no point of .* is outside"):
        measured_error(0, 0, 10)
