"""Numbers are printed in the unit of their measure."""

import pytest

from calibrant.measuring.measure_format import interval, value


@pytest.mark.parametrize("measure", ["ece", "sece", "tace", "ace_nixon", "classwise:bins=5", "smooth"])
def test_every_calibration_error_is_printed_in_percent(measure):
    assert value(measure, 0.0681) == "6.81 %"


def test_a_measure_that_is_best_at_zero_has_a_sign():
    assert value("gap", 0.063) == "+6.30 %"
    assert interval("gap", -0.01, 0.02) == "-1.00 to +2.00"


@pytest.mark.parametrize("name", ["nll", "reliability", "cost"])
def test_other_numbers_are_decimals(name):
    assert value(name, 0.0681) == "0.0681"
