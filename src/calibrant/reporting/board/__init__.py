"""A board of models on the same questions: numbers, rankings with groups, paired answers, page, Markdown and CSV."""
