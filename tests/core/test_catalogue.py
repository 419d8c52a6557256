"""A folder of files as a catalogue, and a user's own file."""

import json
import os
import sys

import pytest

from calibrant import calibrators, corruptions, datasets, figures, measures
from calibrant.core.catalogue import load_file, spec_of
from calibrant.core.errors import InputError
from calibrant.measures import CATALOGUE, find, make, names
from calibrant.measures.brier import Brier
from calibrant.measures.ece import ECE

MINE = '''
"""My own measure."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.predictions import Predictions
from calibrant.measures import Measure


@dataclass(frozen=True)
class Mine(Measure):
    """Mean confidence times `factor`."""

    factor: float = 1.0

    title: ClassVar[str] = "Mine"
    reference: ClassVar[str] = "-"

    def __call__(self, p: Predictions) -> float:
        return float(p.confidence.mean() * self.factor)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in; modules loaded from it are forgotten afterwards."""
    before = dict(sys.modules)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


def test_names_are_the_files():
    assert "ece" in names()
    assert names() == sorted(names())
    assert not any(name.startswith("_") for name in names())


def test_the_list_of_names_cannot_be_changed():
    names().clear()
    assert "ece" in names()


def test_make_reads_options_of_every_type():
    assert make("ece") == ECE()
    assert make("ece:bins=30,scheme=mass") == ECE(bins=30, scheme="mass")
    assert make("ece: bins=30 , scheme=mass ") == ECE(bins=30, scheme="mass")
    assert make("ece:norm=2").norm == 2.0
    assert make("sece:leave_one_out=true").leave_one_out is True
    assert make("ece:dialect=none").dialect is None
    assert make("brier:form=top") == Brier(form="top")
    assert make("nll:floor=1e-6").floor == 1e-6


def test_spec_is_the_shortest_that_makes_it():
    assert spec_of(ECE()) == "ece"
    assert spec_of(ECE(bins=30, scheme="mass")) == "ece:bins=30,scheme=mass"
    assert spec_of(make("sece:leave_one_out=true")) == "sece:leave_one_out=true"


def test_unknown_names_get_the_nearest():
    with pytest.raises(InputError, match="did you mean 'ece'"):
        make("ecee")
    with pytest.raises(InputError, match="one of accuracy"):
        find("nothing_like_it_at_all")
    with pytest.raises(InputError):
        find("_base")
    with pytest.raises(InputError):
        make("")


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("auc", "did you mean 'roc_auc' (of P(positive)"),
        ("pr_auc", "did you mean 'average_precision' (which adds up steps"),
        ("aupr", "did you mean 'average_precision'"),
        ("log_loss", "did you mean 'nll'?"),
        ("calibration_error", "did you mean 'ece'"),
        ("expected_calibration_error", "did you mean 'ece'?"),
        ("cwece", "did you mean 'classwise'?"),
        ("ROC-AUC", "did you mean 'roc_auc'?"),
        ("mse", "did you mean 'brier' (the squared error"),
        ("f1", "pick one of these names"),
        ("mae", "pick one of these names"),
        ("kl", "pick one of these names"),
        ("eec", "did you mean 'ece'?"),
        ("acuracy", "did you mean 'accuracy'?"),
    ],
)
def test_an_unknown_name_is_read_by_its_meaning_before_its_letters_and_never_as_another_quantity(name, fix):
    assert f"To fix it: {fix}" in str(CATALOGUE.unknown(name))


def test_a_name_with_two_meanings_gets_both():
    says = str(CATALOGUE.unknown("auroc"))
    assert "'auroc_correct' (of the confidence, for being right)" in says
    assert "'roc_auc' (of P(positive)" in says


def test_calibrators_are_known_by_their_titles_too():
    for name in ("TemperatureScaling", "temperature_scaling", "temp_scaling"):
        assert "did you mean 'temperature'?" in str(calibrators.CATALOGUE.unknown(name))


def test_no_name_of_others_is_a_name_of_ours():
    for name in names():
        assert not set(find(name).other_names) & {*names(), *find(name).aliases}


@pytest.mark.parametrize("room", [measures, calibrators, datasets, corruptions, figures])
def test_classes_are_found_by_their_own_names(room):
    for name in room.CATALOGUE._names:
        cls = room.find(name)
        assert getattr(room, cls.__name__) is cls
        assert cls.__name__ in dir(room)
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchClass'"):
        room.NoSuchClass  # noqa: B018


def test_broken_options_say_how_to_write_them():
    with pytest.raises(InputError, match="option=value"):
        make("ece:bins")
    with pytest.raises(InputError, match="a whole number"):
        make("ece:bins=many")
    with pytest.raises(InputError, match="did you mean 'bins'"):
        make("ece:bin=3")
    with pytest.raises(InputError, match="did you mean 'mass'"):
        make("ece:scheme=mas")
    with pytest.raises(InputError, match="true"):
        make("sece:leave_one_out=yes")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bins": "15"}, "ECE.bins: expected a whole number, got '15'"),
        ({"bins": 2.5}, "ECE.bins: expected a whole number, got 2.5"),
        ({"norm": float("nan")}, "ECE.norm: expected a finite number, got nan"),
        ({"scheme": "mas"}, "ECE.scheme: expected one of mass, width, got 'mas'. To fix it: did you mean 'mass'"),
    ],
)
def test_options_given_in_python_are_checked_as_those_of_text(options, says):
    with pytest.raises(InputError, match=says):
        ECE(**options)


def test_an_option_given_twice_is_refused():
    with pytest.raises(InputError):
        make("ece:bins=3,bins=4")


# -- a user's own file ----------------------------------------------------------------------------


def test_own_file_loads_like_ours(folder, p):
    (folder / "mine.py").write_text(MINE)
    assert make("./mine.py")(p) == pytest.approx(p.confidence.mean())
    assert make("./mine.py:factor=2")(p) == pytest.approx(2 * p.confidence.mean())
    assert make(f"{folder / 'mine.py'}:factor=2").factor == 2
    with pytest.raises(InputError, match="did you mean 'factor'"):
        make("./mine.py:facter=2")


def test_own_file_can_change(folder, p):
    (folder / "mine.py").write_text(MINE)
    first = make("./mine.py")(p)
    (folder / "mine.py").write_text(MINE.replace("* self.factor", "* self.factor / 2"))
    assert make("./mine.py")(p) == pytest.approx(first / 2)


def test_spec_of_an_own_file_makes_it_again(folder, p):
    (folder / "mine.py").write_text(MINE)
    measure = make("./mine.py:factor=2")
    assert make(spec_of(measure))(p) == measure(p)


def test_own_file_never_replaces_a_module(folder, p):
    """./json.py is a fine name for a measure; `import json` elsewhere must go on meaning the library."""
    (folder / "json.py").write_text(MINE)
    make("./json.py")(p)
    assert sys.modules["json"] is json


def test_own_file_without_a_measure_is_refused(folder):
    (folder / "empty.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="one measure class"):
        make("./empty.py")
    (folder / "two.py").write_text(MINE + MINE.replace("class Mine", "class Yours"))
    with pytest.raises(InputError, match="one measure class"):
        make("./two.py")


def test_own_file_that_is_not_there_is_refused(folder):
    with pytest.raises(InputError, match="no such file"):
        make("./nothing.py")


def test_own_file_may_import_measures_without_being_taken_for_them(folder, p):
    (folder / "mine.py").write_text(MINE + "\nfrom calibrant.measures.ece import ECE\n")
    assert make("./mine.py")(p) == pytest.approx(p.confidence.mean())


@pytest.mark.parametrize("spec", ["./mine.py", "mine.py:factor=2", " ./mine.py ", "../x/../mine.py"])
def test_a_spec_out_of_a_file_never_runs_code(folder, spec):
    (folder / "mine.py").write_text("open('it ran', 'w')")
    with pytest.raises(InputError, match=r"would have run the Python code in .*mine\.py"):
        CATALOGUE.make_named(spec)
    assert not (folder / "it ran").exists()


def test_a_spec_out_of_a_file_may_name_entries():
    assert CATALOGUE.make_named("ece:bins=30") == ECE(bins=30)
    with pytest.raises(InputError, match="did you mean 'ece'"):
        CATALOGUE.make_named("eec")


def test_a_file_and_its_helper_that_are_edited_in_the_same_second_are_read_anew(tmp_path, monkeypatch):
    """Bytecode is known by whole seconds and by the length of the source: an edit of one digit was not seen."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text("import helper_of_mine\nVALUE = helper_of_mine.VALUE\n")
    for value in (1, 2):
        (tmp_path / "helper_of_mine.py").write_text(f"VALUE = {value}\n")
        os.utime(tmp_path / "helper_of_mine.py", (1e9, 1e9))
        sys.modules.pop("helper_of_mine", None)
        assert value == load_file(tmp_path / "mine.py", "measure").VALUE
    sys.modules.pop("helper_of_mine", None)
