"""The table of lemmas: errors within proved bounds, sizes within the stated ones, and what is wrongly filled in."""

import numpy as np
import pytest

from constructions.token_selection import context_rows, lemma_kernels, soft_selection
from constructions.token_selection.lemmas import Case, cases, row_of
from tests.spread import some
from verify import lemma_bounds as stated

SAMPLES = len(some(range(2_000), 0.001))


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case.lemma} {case.what}")
def test_lemmas_that_are_networks(case: Case) -> None:
    row = case.row(SAMPLES, 0)
    assert row["good"] and 0 <= row["error"] <= row["bound"], row
    assert row["points"] == SAMPLES + len(case.corners)


def test_soft_maxima_kernels_words_and_contexts() -> None:
    found = lemma_kernels.rows(SAMPLES, 1)
    assert all(row["good"] and row["points"] >= SAMPLES for row in found), [row for row in found if not row["good"]]
    assert {row["lemma"] for row in found} == {"F.1", "F.5", "F.6", "H.1", "H.3"}


def test_contexts_of_words_and_random_features() -> None:
    found = context_rows.rows(SAMPLES, 1)
    assert all(row["good"] and row["points"] >= SAMPLES for row in found), [row for row in found if not row["good"]]
    match, _, numbers, alone, every = found
    assert 0 < match["soft_error"] < match["error"] <= match["bound"] < 1 / 8
    assert 0 < numbers["error"] < numbers["bound"] and alone["error"] <= alone["bound"] < every["bound"]
    assert every["error"] > 0  # of strings with a repeated context some go wrong


def test_too_few_features_go_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stated, "random_features", lambda *sizes: 20)
    numbers, alone, _ = context_rows.random_rows(2, 3, 4, 300, np.random.default_rng(0))
    assert numbers["error"] > 1 and not alone["good"]


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: soft_selection.angle_row(soft_selection.angles(4, 3, 2, 0.3), 4, 300, rng),
        lambda rng: soft_selection.vector_row(soft_selection.vectors(True, 1.8, 2, 0.9), 100, rng),
    ],
    ids=["angles", "vectors of any norm"],
)
def test_soft_selection(make) -> None:
    row = make(np.random.default_rng(0))
    assert row["good"] and row["points"] > 100
    assert row["soft_error"] <= row["soft_bound"] and row["error"] <= row["bound"] <= row["asked"]


def test_long_sequences_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same corners and as many sequences; where corners would be too many, the first and the last place stay."""
    setting, told = soft_selection.angles(3, 40, 1, 0.5), []
    whole = soft_selection.angle_row(setting, 3, 30, np.random.default_rng(0))
    monkeypatch.setattr(soft_selection, "MOST_DRAWN", 400)
    monkeypatch.setattr(soft_selection, "MOST_AT_ONCE", 80)
    real = soft_selection._measured

    def measured(setting, keys, values, sequences, advance):
        parts = list(sequences)
        told.append(parts)
        return real(setting, keys, values, parts, advance)

    monkeypatch.setattr(soft_selection, "_measured", measured)
    done: list[int] = []
    parts = soft_selection.angle_row(setting, 3, 30, np.random.default_rng(0), lambda name, count: done.append)
    assert parts["points"] == whole["points"] == sum(done) == 3 * 40 * 2 + 30
    assert parts["good"] and max(len(drawn) for drawn, _, _ in told[0]) == 10 and max(done) <= 2
    monkeypatch.setattr(soft_selection, "MOST_CORNERS", 1)
    few = soft_selection.angle_row(setting, 3, 30, np.random.default_rng(0))
    corners = np.concatenate([right for _, _, right in told[1]])[:-30]
    assert few["points"] == 3 * 2 * 2 + 30 and set(corners.tolist()) == {0, 39}


@pytest.mark.parametrize("norms", [False, True])
def test_corners_of_vectors_lie_at_the_gap(norms) -> None:
    """Every other key is as near as it may be, its value the opposite; the best one the longest or shortest."""
    setting = soft_selection.vectors(norms)
    keys, values, drawn, right = soft_selection._vector_corners(setting, 1.4)
    scores, rows = keys[drawn][..., 0], np.arange(len(drawn))
    top, others = scores[rows, right], np.delete(scores.ravel(), rows * 3 + right).reshape(-1, 2)
    assert np.allclose(top[:, None] - others, 1.4) and set(np.round(top, 9)) == ({0.95, 1.0} if norms else {1.0})
    assert (np.linalg.norm(keys, axis=1) <= 1 + 1e-12).all() and set(right) == {0, 1, 2}
    assert (values[drawn][..., 0].sum(1) == -values[drawn[rows, right]][:, 0]).all()


def test_a_row_is_good_only_within_its_bound_and_sizes() -> None:
    assert row_of("", "", 1, 1.0, 1.0)["good"] and not row_of("", "", 1, 1.1, 1.0)["good"]
    assert not row_of("", "", 1, 0.0, 1.0, sizes={"S": 8}, stated={"S": 7})["good"]


def test_what_does_not_hold_as_it_stands() -> None:
    wrong = lemma_kernels.counterexamples()
    assert wrong["F.5, N for [0, A]"] > 0.99
    assert wrong["H.3, key and query of the same words"] == 1
    assert wrong["H.3, nothing before the start"] == 0 < stated.context_gap(3)


def test_the_picture_shows_what_the_networks_weigh() -> None:
    found = soft_selection.one_selection(soft_selection.angles(4, 4, 1, 0.3), 4, 0)
    chosen = found["chosen"]
    assert found["scores"][chosen] == max(found["scores"]) == 1
    assert np.abs(np.subtract(found["softmax"], found["networks"])).max() < 0.05
    assert abs(found["output"][0] - found["values"][chosen][0]) <= found["bound"]
