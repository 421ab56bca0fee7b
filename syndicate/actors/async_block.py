"""Asynchronous blocks: what is open within ``async with``, and says so where that was not written.

>>> import trio
>>> @async_block
... async def open_lamp():
...     yield "bright"
>>> async def main():
...     async with open_lamp() as lamp:
...         print(lamp)
>>> trio.run(main)
bright
>>> open_lamp().lit
Traceback (most recent call last):
    ...
AttributeError: open_lamp() has no attribute 'lit': it opens what is there in a block: async with open_lamp() as ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Generic, NoReturn, ParamSpec, TypeVar

from syndicate.errors import ArgumentError

P = ParamSpec("P")
T = TypeVar("T")


class AsyncBlock(AbstractAsyncContextManager[T, bool | None], Generic[T]):
    """What a function of :func:`async_block` returns."""

    def __init__(self, name: str, block: AbstractAsyncContextManager[T]) -> None:
        self._name = name
        self._block = block

    async def __aenter__(self) -> T:
        """Open it."""
        return await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        """Close it."""
        return await self._block.__aexit__(kind, error, at)

    def __enter__(self) -> NoReturn:
        raise ArgumentError(f"{self._name}() is no plain block: {self._remedy}")

    def __exit__(self, *error: object) -> None:
        """There is nothing to close."""

    def __await__(self) -> NoReturn:
        raise ArgumentError(f"{self._name}() is not awaited: {self._remedy}")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self._name}() has no attribute {name!r}: {self._remedy}", name=name, obj=self)

    @property
    def _remedy(self) -> str:
        return f"it opens what is there in a block: async with {self._name}() as ..."


def async_block(open_: Callable[P, AsyncIterator[T]]) -> Callable[P, AsyncBlock[T]]:
    """As :func:`contextlib.asynccontextmanager`, for functions that users call."""
    block = asynccontextmanager(open_)

    @wraps(open_)
    def opened(*args: P.args, **kwargs: P.kwargs) -> AsyncBlock[T]:
        return AsyncBlock(open_.__name__, block(*args, **kwargs))

    return opened
