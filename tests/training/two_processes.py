"""A training that two processes share, each forked from a server that has loaded torch once."""

import multiprocessing
import os
import socket


def share(recipe, folder):
    """Start both as a cluster would, each with its rank and a common address; their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["calibrant.training.loop", "lightning_fabric"])
    processes = [context.Process(target=_train, args=(recipe, folder, rank, port)) for rank in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def _train(recipe, folder, rank, port):
    from calibrant.training.loop import train
    from calibrant.training.recipe import Recipe

    os.environ |= {"LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    train(Recipe.from_dict(recipe), folder, device="cpu", processes=2)
