"""What predictions hold: scores, what was true, and what rows carry beside them; never changed."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, lock
from calibrant.core.extras import Extras, Shape
from calibrant.core.views import Kind, Views

if TYPE_CHECKING:
    from calibrant.core.missing import Missing


class Held(Views):
    """Valid arrays, locked, with names for what is beside them."""

    def __init__(
        self, values: Floats, labels: Ints | npt.NDArray[np.bool_], kind: Kind, extras: Extras | None = None
    ) -> None:
        """For internal use: takes valid arrays without looking at them. Users call `from_logits` or `from_probs`."""
        extras = extras or Extras()
        if values.ndim == 1:  # one score in float64, and whether its event happened: nothing else is kept
            self.__dict__.update(alone=values, happened=labels, kind=kind, extras=extras)
        else:
            self.__dict__.update(alone=None, values=values, labels=labels, kind=kind, extras=extras)
        lock(values, labels, *extras.arrays().values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"predictions never change: build new ones instead of setting {name}")

    @property
    def shape(self) -> Shape:
        """classes, binary, confidence or choices."""
        return self.extras.shape

    @property
    def weights(self) -> Array | None:
        return self.extras.weights

    @property
    def clusters(self) -> Ints | None:
        return self.extras.shared_clusters

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; empty where they have none."""
        return self.extras.classes

    @property
    def missing(self) -> "Missing | None":
        """Rows of the file that had no score, and what was done about them; None where all had one."""
        return self.extras.missing

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of numbers should know about where these came from."""
        return (*((str(self.missing),) if self.missing is not None else ()), *self.extras.notes)

    @property
    def features(self) -> Floats | None:
        return self.extras.features

    @property
    def ids(self) -> npt.NDArray[Any] | None:
        return self.extras.ids

    @property
    def groups(self) -> npt.NDArray[Any] | None:
        return self.extras.groups
