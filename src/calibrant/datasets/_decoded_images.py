"""Images of files decoded once, by several threads, into the cache."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from calibrant.core.parallel import threads
from calibrant.datasets._base import Bytes
from calibrant.datasets._decode import Encoded, Picture, decode_many
from calibrant.datasets._image_cache import Blocks, cached_images

VERSION = 1  # of what decoding does: another number, and every cache is made again
AT_ONCE = 256


def decode_images(
    name: str,
    sources: Iterable[Path],
    options: str,
    n: int,
    picture: Callable[[], Picture],
    images: Callable[[], Iterable[Encoded]],
) -> Bytes:
    """The images of these files, (n, height, width, channels), read with these options."""

    def make() -> tuple[tuple[int, int, int], Blocks]:
        first = picture()
        return first.shape, _blocks(first, images)

    return cached_images(name, sources, f"{VERSION} {options}", n, make)


def _blocks(picture: Picture, images: Callable[[], Iterable[Encoded]]) -> Blocks:
    rest = iter(images())
    with ThreadPoolExecutor(threads()) as pool:
        while block := list(islice(rest, AT_ONCE)):
            yield decode_many(block, picture, pool)
