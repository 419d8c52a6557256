"""`cached_property` without a lock, as Python 3.12 and later have it.

Up to Python 3.11 that of functools holds one lock for all objects of a class while it computes. Threads that wait for
each other's parts of spread work (`core/parallel`) then wait for ever.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:
    T = TypeVar("T")

    class cached_property(Generic[T]):  # noqa: N801  named as in functools
        """A value that is computed at its first use and kept by the object."""

        def __init__(self, func: Callable[[Any], T]) -> None:
            self.func, self.attrname, self.__doc__ = func, "", func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
