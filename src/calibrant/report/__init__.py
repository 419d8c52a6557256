"""What people read: tables for the terminal, and one page about predictions.

The room can be called, so that `calibrant.report(p)` is both the function people type first and the folder it lives in.
"""

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy.typing as npt

    from calibrant.core.predictions import Predictions
    from calibrant.report.cost import CostRule
    from calibrant.report.values import Report


class _Room(ModuleType):
    def __call__(
        self,
        models: "Predictions | Mapping[str, Predictions]",
        *,
        fit_on: "Predictions | Mapping[str, Predictions] | None" = None,
        groups: "npt.ArrayLike | Literal['none'] | None" = None,
        cost: "str | CostRule | None" = None,
        class_names: Sequence[str] | None = None,
        calibrators: Sequence[str] | None = None,
        bins: int = 15,
        title: str | None = None,
        seed: int = 0,
        resamples: int | None = None,
    ) -> "Report":
        """A report of one model, or of several by name: `.save("report.html")`, or look at it in a notebook.

        Calibrators are fitted on `fit_on`; without it they are cross-fitted, and the report says so.
        """
        from calibrant.report.build import build

        return build(
            models,
            fit_on=fit_on,
            groups=groups,
            cost=cost,
            class_names=class_names,
            calibrators=calibrators,
            bins=bins,
            title=title,
            seed=seed,
            resamples=resamples,
        )


sys.modules[__name__].__class__ = _Room
