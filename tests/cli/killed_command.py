"""A command that ends at its n-th write, in a process that shares its imports with the next one to be ended."""

import multiprocessing
import os
import sys

PRELOAD = ["calibrant.cli", "calibrant.training.loop", "calibrant.rescoring.confidnet", "calibrant.studying.study"]


def run(words, *, fault_at=0):
    """`calibrant` with these words; the exit code, which is 137 where a fault point ended it (0: nowhere)."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    process = context.Process(target=_run, args=([str(word) for word in words], fault_at))
    process.start()
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode


def _run(words, fault_at):
    from calibrant.cli import main
    from calibrant.core import files

    files._passed = 0
    os.environ["CALIBRANT_FAULT_AT"] = str(fault_at)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    sys.argv = ["calibrant", *words]
    main()
