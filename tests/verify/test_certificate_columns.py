"""The columns certificate proves Lemma 3's circuit and sees every planted error."""

import pytest

from compiler.artifact.package import bare
from compiler.driver import compile
from constructions.selectivity.induction_heads import InductionHeads
from verify.certificates.certificate import Refused, Violated
from verify.certificates.columns import certify_columns


def model(vocab, arch="mamba-delta-t", codes=False):
    return bare(compile(InductionHeads(vocab=vocab, arch=arch, codes=codes).circuit(), arch))


@pytest.mark.parametrize("vocab, codes", [(1, False), (2, True), (5, False), (12, True), (40, False)])
def test_lemma_3_at_every_length(vocab, codes):
    certificate = certify_columns(model(vocab, codes=codes), range(1, vocab + 1), 0)
    assert (
        certificate.holds
        and certificate.margin == (0.5 if vocab > 1 else 1)
        and certificate.windows == vocab * (vocab + 1)
    )


def test_without_the_shift_of_the_step():
    """The paper's softplus(w·k) is log 2 where k = 0: what must be kept fades."""
    stack = model(4)
    stack.blocks[0].dt_proj.bias.data += 128
    with pytest.raises(Violated, match="does not stay"):
        certify_columns(stack, range(1, 5), 0)


def test_a_column_that_adds_instead_of_overwriting():
    stack = model(4)
    stack.blocks[0].dt_proj.bias.data[2] = -200.0
    stack.blocks[0].dt_proj.weight.data[2] = 0
    with pytest.raises(Violated, match="remembers"):
        certify_columns(stack, range(1, 5), 0)


def test_a_read_of_two_columns():
    stack = model(4)
    projection = stack.blocks[0].BC_proj.weight.data
    projection[4] += projection[5]
    with pytest.raises(Violated, match="other than the present"):
        certify_columns(stack, range(1, 5), 0)


def test_a_wrong_answer_has_no_margin():
    stack = model(4)
    stack.head.weight.data[[1, 2]] = stack.head.weight.data[[2, 1]]
    assert not certify_columns(stack, range(1, 5), 0).holds


def test_other_modules_are_refused():
    with pytest.raises(Refused):
        certify_columns(model(4, "mamba"), range(1, 5), 0)
