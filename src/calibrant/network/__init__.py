"""Maps as parts of a network, and exports of maps to where networks run."""
