"""What is computed from predictions. Each view is a function of them; `view` makes it a property that they keep."""

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np

from calibrant.core.arrays import lock

T = TypeVar("T")
Keep = Literal["always", "small", "never"]


class view(Generic[T]):  # noqa: N801  named as the decorator that it is
    """A property that a function computes from predictions at its first use.

    They keep the result, read-only, until `release`: always, only while they are small, or never. No lock is held
    while it is computed: threads that wait for each other's parts of spread work would wait for ever.
    """

    def __init__(self, function: Callable[[Any], T], *, keep: Keep = "always") -> None:
        self.function, self.keep, self.__doc__ = function, keep, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, p: None, owner: type) -> "view[T]": ...
    @overload
    def __get__(self, p: object, owner: type) -> T: ...
    def __get__(self, p: Any, owner: type) -> "view[T] | T":
        if p is None:
            return self
        result = self.function(p)
        if self.keep == "always" or (self.keep == "small" and p.is_small):
            vars(p)[self.name] = lock(result) if isinstance(result, np.ndarray) else result
        return result
