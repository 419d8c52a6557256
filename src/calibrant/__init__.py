"""calibrant: measure, repair, train and study the honesty of a classifier's confidence.

>>> import calibrant as cal
>>> p = cal.Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
>>> cal.measure(p, "ece:bins=2", resamples=0).value
0.25
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant import (
        calibrators,
        corruptions,
        datasets,
        figures,
        losses,
        measures,
        models,
        questions,
        rescorers,
        searches,
        spaces,
    )
    from calibrant.core.errors import InputError, LeakWarning
    from calibrant.core.exported import Exported
    from calibrant.core.map import Map, load_map
    from calibrant.core.parallel import threads
    from calibrant.core.predictions import Predictions
    from calibrant.core.torch.collect import collect
    from calibrant.measuring.accumulate import Accumulator
    from calibrant.measuring.accumulators import Accumulators
    from calibrant.measuring.battery import battery, benchmark102
    from calibrant.measuring.check import Check, check, check_worse
    from calibrant.measuring.compare import Comparison, compare
    from calibrant.measuring.consistency import Consistency, consistency
    from calibrant.measuring.decompose import Decomposition, decompose
    from calibrant.measuring.hcs import harmonic_score
    from calibrant.measuring.measure import Measurement, Measurements, measure, measure_all
    from calibrant.measuring.synthetic import synthetic
    from calibrant.measuring.table import Results, table
    from calibrant.measuring.watch import Watch, watch
    from calibrant.plotting.draw import draw
    from calibrant.plotting.plot import Plot, plot
    from calibrant.repairing.choose import Choice, choose
    from calibrant.repairing.export import export
    from calibrant.repairing.fit import fit
    from calibrant.repairing.proximity_groups import ProximityGroups
    from calibrant.repairing.sklearn import CalibratedClassifier
    from calibrant.reporting.build import report
    from calibrant.reporting.from_sums import SumsReport, sums_report
    from calibrant.reporting.report import Report
    from calibrant.rescorers.clamping import Clamped, NeuralClamping, load_clamped
    from calibrant.rescorers.confidnet import ConfidNet
    from calibrant.rescorers.density_ratio import DensityRatio
    from calibrant.rescorers.trust_score import TrustScore
    from calibrant.rescoring.rescore import rescore
    from calibrant.studying.study import Study, open_study, study
    from calibrant.training.callbacks import HuggingFaceMetrics, lightning_callback
    from calibrant.training.learned import GammaNet, Smoothing, UnitL2
    from calibrant.training.loop import train
    from calibrant.training.meta import MetaStep
    from calibrant.training.recipe import Data, Meta, Optimizer, Recipe, Schedule
    from calibrant.training.run import Run, open_run

__version__ = "0.1.0"

# Where every public name lives. Nothing is loaded before it is asked for, so that `import calibrant` is light.
_HOMES = {
    "core.errors": ("InputError", "LeakWarning"),
    "core.exported": ("Exported",),
    "core.map": ("Map", "load_map"),
    "core.parallel": ("threads",),
    "core.predictions": ("Predictions",),
    "core.torch.collect": ("collect",),
    "measuring.accumulate": ("Accumulator",),
    "measuring.accumulators": ("Accumulators",),
    "measuring.battery": ("battery", "benchmark102"),
    "measuring.check": ("Check", "check", "check_worse"),
    "measuring.compare": ("Comparison", "compare"),
    "measuring.consistency": ("Consistency", "consistency"),
    "measuring.decompose": ("Decomposition", "decompose"),
    "measuring.hcs": ("harmonic_score",),
    "measuring.measure": ("Measurement", "Measurements", "measure", "measure_all"),
    "measuring.synthetic": ("synthetic",),
    "measuring.table": ("Results", "table"),
    "measuring.watch": ("Watch", "watch"),
    "plotting.draw": ("draw",),
    "plotting.plot": ("Plot", "plot"),
    "repairing.choose": ("Choice", "choose"),
    "repairing.export": ("export",),
    "repairing.fit": ("fit",),
    "repairing.proximity_groups": ("ProximityGroups",),
    "repairing.sklearn": ("CalibratedClassifier",),
    "reporting.build": ("report",),
    "reporting.from_sums": ("SumsReport", "sums_report"),
    "reporting.report": ("Report",),
    "rescorers.clamping": ("Clamped", "NeuralClamping", "load_clamped"),
    "rescorers.confidnet": ("ConfidNet",),
    "rescorers.density_ratio": ("DensityRatio",),
    "rescorers.trust_score": ("TrustScore",),
    "rescoring.rescore": ("rescore",),
    "studying.study": ("Study", "open_study", "study"),
    "training.callbacks": ("HuggingFaceMetrics", "lightning_callback"),
    "training.learned": ("GammaNet", "Smoothing", "UnitL2"),
    "training.loop": ("train",),
    "training.meta": ("MetaStep",),
    "training.recipe": ("Data", "Meta", "Optimizer", "Recipe", "Schedule"),
    "training.run": ("Run", "open_run"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_CATALOGUES = (
    "calibrators",
    "corruptions",
    "datasets",
    "figures",
    "losses",
    "measures",
    "models",
    "questions",
    "rescorers",
    "searches",
    "spaces",
)

__all__ = [
    "Accumulator",
    "Accumulators",
    "CalibratedClassifier",
    "Check",
    "Choice",
    "Clamped",
    "Comparison",
    "ConfidNet",
    "Consistency",
    "Data",
    "Decomposition",
    "DensityRatio",
    "Exported",
    "GammaNet",
    "HuggingFaceMetrics",
    "InputError",
    "LeakWarning",
    "Map",
    "Measurement",
    "Measurements",
    "Meta",
    "MetaStep",
    "NeuralClamping",
    "Optimizer",
    "Plot",
    "Predictions",
    "ProximityGroups",
    "Recipe",
    "Report",
    "Results",
    "Run",
    "Schedule",
    "Smoothing",
    "Study",
    "SumsReport",
    "TrustScore",
    "UnitL2",
    "Watch",
    "battery",
    "benchmark102",
    "calibrators",
    "check",
    "check_worse",
    "choose",
    "collect",
    "compare",
    "consistency",
    "corruptions",
    "datasets",
    "decompose",
    "draw",
    "export",
    "figures",
    "fit",
    "harmonic_score",
    "lightning_callback",
    "load_clamped",
    "load_map",
    "losses",
    "measure",
    "measure_all",
    "measures",
    "models",
    "open_run",
    "open_study",
    "plot",
    "questions",
    "report",
    "rescore",
    "rescorers",
    "searches",
    "spaces",
    "study",
    "sums_report",
    "synthetic",
    "table",
    "threads",
    "train",
    "watch",
]


def __getattr__(name: str) -> object:
    if name in _CATALOGUES:
        return import_module(f"calibrant.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'calibrant' has no attribute '{name}'")
    globals()[name] = found = getattr(import_module(f"calibrant.{_HOME_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
