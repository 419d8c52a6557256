"""A training that is killed in the middle, in a process that shares its imports with the next one to be killed."""

import multiprocessing
import os
import signal


def kill(recipe, folder, *, at, save_every):
    """Train in a process of its own that kills itself at a step of the second epoch; the exit code.

    The process is forked from a server that has loaded torch once: loading takes longer than a small training.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["calibrant.training.loop", "lightning_fabric"])
    process = context.Process(target=_train, args=(recipe, folder, at, save_every))
    process.start()
    process.join(120)
    return process.exitcode


def _train(recipe, folder, at, save_every):
    from calibrant.training import loop
    from calibrant.training.recipe import Recipe

    def die(now):
        if (now.epoch, now.step) == (1, at) and now.row is None:
            os.kill(os.getpid(), signal.SIGKILL)

    loop.SAVE_EVERY = save_every
    loop.train(Recipe.from_dict(recipe), folder, on_progress=die)
