"""`python -m calibrant` is `calibrant`."""

from calibrant.cli import main

main()
