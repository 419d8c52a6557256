"""The page in a browser, as thin as the command line: predictions to look into, a network to clamp, pages to play."""
