from . import recipe as recipe
from .learned_losses import GammaNet as GammaNet
from .learned_losses import Smoothing as Smoothing
from .learned_losses import UnitL2 as UnitL2
from .meta import MetaStep as MetaStep
