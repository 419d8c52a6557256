"""calibrant: measure, repair, train and study how well a classifier's confidence matches its accuracy.

>>> import calibrant as cal
>>> p = cal.Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
>>> cal.measure(p, "ece:bins=2", resamples=0).value
0.25
"""

import lazy_loader

__version__ = "0.1.0"

# The public names are those of __init__.pyi: each is loaded when it is first used, so that `import calibrant` is light.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
