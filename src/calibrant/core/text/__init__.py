"""How numbers and words look to a reader: number format, vocabulary by task, notebook tables, theme of figures."""
