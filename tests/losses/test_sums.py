"""Sums of losses written as text: what they mean, and what is refused."""

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from calibrant.core.errors import InputError
from calibrant.losses import CATALOGUE, Term, make, names
from calibrant.losses.crl import CRL

B, K = 12, 4


@pytest.fixture
def z():
    return torch.tensor(2 * np.random.default_rng(0).normal(size=(B, K)))


@pytest.fixture
def y():
    return torch.arange(B) % K


def part(spec, z, y):
    return CATALOGUE.make(spec)(z, y).item()


# -- meaning --------------------------------------------------------------------------------------


def test_sum_of_a_loss_and_a_term(z, y):
    loss = make("focal:gamma=1 + 0.5*mdca")
    assert loss(z, y).item() == pytest.approx(part("focal:gamma=1", z, y) + 0.5 * part("mdca", z, y), rel=1e-12)
    assert loss.weights == (1.0, 0.5)


def test_sum_of_three_with_options(z, y):
    loss = make("0.5*focal:gamma=2 + 1.5*sece:h=0.1,accuracy=hard + 1e-1*mmce")
    parts = part("focal:gamma=2", z, y), part("sece:h=0.1,accuracy=hard", z, y), part("mmce", z, y)
    assert loss(z, y).item() == pytest.approx(np.dot((0.5, 1.5, 0.1), parts), rel=1e-12)


def test_one_loss_with_a_weight(z, y):
    assert make("2*ce")(z, y).item() == pytest.approx(2 * part("ce", z, y), rel=1e-12)
    assert make("0*ce")(z, y).item() == 0


def test_one_loss_is_itself():
    assert type(make("ce")) is CATALOGUE.find("ce")
    assert type(make("  focal:gamma=2 ")) is CATALOGUE.find("focal")


@pytest.mark.parametrize("name", [name for name in names() if issubclass(CATALOGUE.find(name), Term) and name != "crl"])
def test_a_term_alone_gets_its_partner_and_its_weight(name, z, y):
    cls = CATALOGUE.find(name)
    expected = part(cls.partner, z, y) + cls.weight * part(name, z, y)
    assert make(name)(z, y).item() == pytest.approx(expected, rel=1e-12)
    assert make(f"7*{name}")(z, y).item() == pytest.approx(7 * part(name, z, y), rel=1e-12)  # as it is written


def test_a_term_with_a_weight_is_the_term_alone(z, y):
    assert make("1*sece")(z, y).item() == part("sece", z, y)
    assert make(make("1*sece").extra_repr())(z, y).item() == part("sece", z, y)


def test_partners_and_weights_of_the_papers():
    facts = {name: (CATALOGUE.find(name).partner, CATALOGUE.find(name).weight) for name in ("mdca", "avuc", "crl")}
    assert facts == {"mdca": ("focal:gamma=1", 1.0), "avuc": ("ce", 3.0), "crl": ("ce", 1.0)}
    assert CATALOGUE.find("mmce_weighted").weight == 2.0
    assert CATALOGUE.find("dece").weight == 0.5


def test_a_term_in_a_sum_has_no_weight_of_its_own(z, y):
    assert make("ce + avuc")(z, y).item() == pytest.approx(part("ce", z, y) + part("avuc", z, y), rel=1e-12)


def test_two_terms_are_the_terms(z, y):
    assert make("mdca + dca")(z, y).item() == pytest.approx(part("mdca", z, y) + part("dca", z, y), rel=1e-12)


def test_spaces_around_the_plus_may_be_many(z, y):
    assert make(" ce   +  0.5*mdca ")(z, y).item() == make("ce + 0.5*mdca")(z, y).item()


def test_a_plus_in_an_exponent_is_no_sum(z, y):
    assert make("focal:gamma=1e+0")(z, y).item() == part("focal:gamma=1", z, y)
    assert make("2e+0*ce")(z, y).item() == make("2*ce")(z, y).item()


@pytest.mark.parametrize("spec", ["ce", "2*ce", "mdca", "3*mdca", "focal:gamma=1 + 0.5*mdca", "0.5*ce + 2*sece:h=0.1"])
def test_what_it_shows_makes_it_again(spec, z, y):
    loss = make(spec)
    again = make(loss.extra_repr())
    assert again.extra_repr() == loss.extra_repr()
    assert again(z, y).item() == loss(z, y).item()


def test_every_call_makes_a_new_one():
    assert make("ce") is not make("ce")
    assert make("avuc").parts[1] is not make("avuc").parts[1]


def test_gradients_add_up(z, y):
    z.requires_grad_()
    (whole,) = torch.autograd.grad(make("focal:gamma=1 + 0.5*mdca")(z, y), z)
    one, two = (torch.autograd.grad(CATALOGUE.make(s)(z, y), z)[0] for s in ("focal:gamma=1", "mdca"))
    assert torch.allclose(whole, one + 0.5 * two, rtol=0, atol=1e-14)


# -- reduction ------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["ce", "2*ce", "mdca", "focal:gamma=1 + 0.5*mdca", "brier + mmce"])
def test_sum_is_the_size_of_the_batch_times_the_mean(spec, z, y):
    assert make(spec, "sum")(z, y).item() == pytest.approx(B * make(spec, "mean")(z, y).item(), rel=1e-12)
    assert make(spec, "sum").reduction == "sum"


def test_no_reduction_of_rows(z, y):
    rows = make("ce + 0.5*brier", "none")(z, y)
    assert rows.shape == (B,)
    assert rows.mean().item() == pytest.approx(make("ce + 0.5*brier")(z, y).item(), rel=1e-12)


def test_reduction_as_an_option_of_every_part(z, y):
    loss = make("ce:reduction=sum + mdca:reduction=sum")
    assert loss.reduction == "sum"
    assert loss(z, y).item() == pytest.approx(make("ce + mdca", "sum")(z, y).item(), rel=1e-12)


@pytest.mark.parametrize("spec", ["mdca", "ce + mdca"])
def test_a_term_has_no_rows(spec):
    with pytest.raises(InputError, match="no value per row"):
        make(spec, "none")


def test_parts_that_reduce_differently():
    with pytest.raises(InputError, match="one reduction for all"):
        make("ce:reduction=sum + mdca")


# -- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "ce+mdca": "spaces round the \\+",
    "ce +mdca": "spaces round the \\+",
    "ce+ 0.5*mdca": "spaces round the \\+",
    "-1*ce": "weights of 0 or more",
    "inf*ce": "weights of 0 or more",
    "nan*ce": "weights of 0 or more",
    "two*ce": "weight\\*name",
    "*ce": "weight\\*name",
    "1*2*ce": "weight\\*name",
    "": "expected one of",
    "ce + ": "spaces round the \\+",
    "+ ce": "spaces round the \\+",
    "ce + + mdca": "spaces round the \\+",
    "focl": "did you mean 'focal'",
    "ce + 0.5*mdcaa": "did you mean 'mdca'",
    "focal:gama=2": "did you mean 'gamma'",
    "focal:gamma=two": "a number",
    "focal:gamma": "option=value",
    "focal:gamma=1,gamma=2": "one value",
    "focal:gamma=-1": "0 or more",
    "focal:gamma=nan": "finite",
    "focal:gamma=inf": "finite",
    "ce:gamma=1": "option of ce",
    "ce:reduction=avg": "reduction",
    "lp_norm:p=0.5": "1 or more",
    "lp_norm:alpha=-1": "0 or more",
    "erl:beta=-0.1": "0 or more",
    "label_smoothing:epsilon=1": "below 1",
    "label_smoothing:form=other": "did you mean 'others'",
    "flsd:switch=1": "between 0 and 1",
    "flsd:low=-1": "0 or more",
    "flsc:early=0.8,late=0.2": "from early to 1",
    "dual_focal:gamma=-2": "0 or more",
    "margin:margin=-1": "0 or more",
    "cpc:bec=-1": "0 or more",
    "mmce:width=0": "more than 0",
    "mmce_weighted:form=cod": "did you mean 'code'",
    "dece:bins=0": "1 or more",
    "dece:bins=1.5": "a whole number",
    "dece:temperature=0": "more than 0",
    "sece:h=0": "0.0001 or more",
    "sece:leave_one_out=yes": "true or false",
    "soft_binned_ece:p=0.5": "1 or more",
    "sb_avuc:kappa=1": "between 0 and 1",
    "crl:score=maximum": "score",
    "mixup:alpha=0": "more than 0",
    "ce + mixup": "losses of plain labels",
    "mixup:base=crl": "needs no ids",
    "mixup:base=mixup": "needs no ids",
}


@pytest.mark.parametrize("spec", REFUSED)
def test_make_refuses_bad_specs(spec):
    with pytest.raises(InputError, match=REFUSED[spec]):
        make(spec)


@pytest.mark.parametrize("reduction", ["average", "", "Mean"])
def test_reduction_that_nobody_knows(reduction):
    with pytest.raises(InputError, match="reduction"):
        make("ce", reduction)


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        (torch.zeros(4), torch.zeros(4, dtype=torch.long)),
        (torch.zeros(4, 3), torch.zeros(5, dtype=torch.long)),
        (torch.zeros(4, 3), torch.zeros(4)),
        (torch.zeros(4, 3), torch.zeros(4, 3, dtype=torch.long)),
        (torch.zeros(2, 4, 3), torch.zeros(2, dtype=torch.long)),
    ],
)
def test_shapes_that_do_not_fit(logits, labels):
    for spec in ("ce", "focal", "mdca"):
        with pytest.raises(InputError, match=r"logits \(B, k\)"):
            make(spec)(logits, labels)
        with pytest.raises(InputError, match=r"logits \(B, k\)"):
            make(spec)(logits.clone().requires_grad_(), labels)


def test_pairwise_constraints_need_three_classes():
    with pytest.raises(InputError, match="three classes"):
        make("cpc")(torch.zeros(3, 2), torch.tensor([0, 1, 0]))


# -- hooks ----------------------------------------------------------------------------------------


def test_hooks_reach_every_part(z, y):
    loss = make("flsc + avuc + crl")
    loss.start(samples=B, epochs=7)
    loss.start_epoch(0)
    loss(z, y, torch.arange(B))
    loss.start_epoch(5)
    schedule, threshold, ranking = loss.losses
    assert schedule.gamma.item() == 1.0
    assert threshold.threshold.item() != 1.0
    assert isinstance(ranking, CRL)
    assert ranking.epoch.item() == 5
    assert ranking.counts.sum().item() == (z.argmax(1) == y).sum().item()


def test_the_state_of_the_parts_is_saved():
    one = make("ce + avuc")
    one.parts[1].threshold.fill_(0.25)
    two = make("ce + avuc")
    two.load_state_dict(one.state_dict())
    assert two.losses[1].threshold.item() == 0.25
