"""Properties that are kept: computed once for each object, without a lock that all objects share."""

import threading

from calibrant.core.cached_property import cached_property


class Room:
    """Its value waits until the other room's is computed too."""

    def __init__(self, here: threading.Event, there: threading.Event) -> None:
        self.here, self.there, self.calls = here, there, 0

    @cached_property
    def met(self) -> bool:
        self.calls += 1
        self.here.set()
        return self.there.wait(timeout=5)


def test_objects_of_one_class_compute_at_the_same_time():
    """With the lock of functools up to Python 3.11 the second would begin only after the first has given up."""
    a, b = threading.Event(), threading.Event()
    rooms = [Room(a, b), Room(b, a)]
    workers = [threading.Thread(target=lambda room=room: room.met) for room in rooms]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [room.met for room in rooms] == [True, True]
    assert [room.calls for room in rooms] == [1, 1]
