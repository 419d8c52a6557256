"""Numbers that every computation on predictions shares."""

PROBABILITY_FLOOR = 1e-12  # the smallest probability whose logarithm is taken
KEEP_ELEMENTS = 1 << 22  # n * k up to which probabilities and class curves stay in memory
CHUNK_ELEMENTS = 1 << 16  # elements processed at a time, so that they stay in the processor's cache
PART_ROWS = 1 << 15  # rows processed at a time where there are very many
