"""The page in a browser, as thin as the command line: predictions, a network to clamp, pages to play."""
