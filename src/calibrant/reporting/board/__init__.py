"""A board of models on the same questions: numbers, rankings with groups, page, Markdown, CSV."""
