"""Base class of calibrators: a frozen recipe whose `fit` changes nothing and returns a map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.catalogue import Catalogue, check_options, spec_of
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Fit, Map
from calibrant.core.maps.steps import Linear, Step
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.vocabulary import describe_task

EVERY_TASK: tuple[Task, ...] = ("multiclass", "binary", "confidence", "choice")
PER_CLASS: tuple[Task, ...] = ("multiclass", "binary")  # both classes of a binary prediction have a column


@dataclass(frozen=True)
class Calibrator:
    """A recipe: options only. `fit(p)` learns on held-out predictions and returns a `Map`."""

    aliases: ClassVar[tuple[str, ...]] = ()  # other names it is found by
    other_names: ClassVar[tuple[str, ...]] = ()  # what others call it, or what is near it: an error names this entry
    name_hint: ClassVar[str] = ""  # how it differs from what others call so
    title: ClassVar[str]
    words: ClassVar[str] = ""  # what a sentence calls it, where the name alone says little
    reference: ClassVar[str]
    slow: ClassVar[int | None] = None  # a report tries it up to this many rows x classes to fit on, where it takes long
    keeps_argmax: ClassVar[bool] = False  # can never change a prediction
    binary: ClassVar[bool] = False  # for two classes only
    tasks: ClassVar[tuple[Task, ...]] = ("multiclass",)  # of predictions that it can repair
    of_score: ClassVar[bool] = False  # acts on the score that is judged: of binary predictions, on P(positive)
    of_raw_score: ClassVar[bool] = False  # a sigmoid of the score itself: those of 0 and 1 have no logit
    complexity: ClassVar[int] = 1  # towards which `auto` leans: 0 nothing, 1 a number, 2 per class, 3 per pair or free
    learns: ClassVar[bool] = True  # from the rows
    holds_temperature: ClassVar[bool] = False  # with rows enough it finds a temperature, if that is the truth
    says_zero: ClassVar[bool] = False  # probabilities of its maps can be exactly 0: the log loss has no bound
    sees_constants: ClassVar[bool] = False  # a constant added to a row of logits changes its map
    needs_every_class: ClassVar[bool] = False  # a class without a row gets a probability of next to 0: never chosen
    picks: ClassVar[bool] = False  # from a grid or by folds: another order of rows can make the map jump

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def name_in_text(self) -> str:
        """The name of the calibrator with these options, in a sentence."""
        return self.words if self.words and self == type(self)() else spec_of(self)

    def keeps(self, task: Task) -> bool:
        """Whether it can never change a prediction of this task: P(positive) may cross one half, a bare confidence
        belongs to a prediction that is left alone."""
        return task == "confidence" or (self.keeps_argmax and not (self.of_score and task == "binary"))

    def check_shape(self, p: Predictions) -> None:
        """Refuse predictions that it cannot repair, and name what can."""
        if p.task not in self.tasks:
            able = [name for name, entry in CATALOGUE.load_all()[0].items() if p.task in entry.tasks]
            raise InputError(
                spec_of(self),
                expected=" or ".join(map(describe_task, self.tasks)),
                got=describe_task(p.task),
                fix=f"use one of {', '.join(able)}",
            )
        if self.binary and p.k != 2:
            fix = "use vector or matrix, which take more"
            raise InputError(spec_of(self), expected="two classes", got=f"{p.k}", fix=fix)

    def fit(self, p: Predictions) -> Map:
        raise TypeError(f"{type(self).__name__} does not say how it learns: define fit")

    def build_map(self, p: Predictions, *steps: Step, fit: Fit | None = None, **parameters: object) -> Map:
        """The map of these steps, with this recipe's name and promises."""
        self.check_shape(p)
        return Map(
            calibrator=spec_of(self),
            k=p.k,
            steps=steps,
            parameters=dict(parameters),
            keeps_argmax=self.keeps(p.task),
            fit=fit or Fit(),
            task=p.task,
            score_type=p.score_type,
        )


CATALOGUE = Catalogue("calibrant.calibrators", Calibrator, "calibrator")  # here, because calibrators name each other


def build_scaling(T: float) -> Linear:
    """The step that divides logits by T."""
    return Linear(np.array(1.0 / T), np.array(0.0))
