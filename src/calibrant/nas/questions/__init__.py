"""Questions about a table of networks: the seven of the benchmark study, one file each."""

from calibrant.core.catalogue import Catalogue
from calibrant.nas.questions._base import (
    Answer,
    Claim,
    Networks,
    Number,
    Picture,
    Population,
    Question,
    check_claim,
    format_value,
    number,
)

CATALOGUE = Catalogue("calibrant.nas.questions", Question, "question")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = [
    "CATALOGUE",
    "Answer",
    "Claim",
    "Networks",
    "Number",
    "Picture",
    "Population",
    "Question",
    "check_claim",
    "find",
    "format_value",
    "make",
    "names",
    "number",
]
