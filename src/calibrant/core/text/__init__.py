"""Text for readers: number format, vocabulary by task, notebook tables, theme of figures."""
