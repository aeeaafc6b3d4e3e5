"""Many short cases in one test: pytest takes longer to run a test than such a case takes."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

import pytest


def cases(names: str | tuple[str, ...], values: Collection[Any]) -> Callable[[Any], Any]:
    """Like `pytest.mark.parametrize`, but run all cases in one test, which reports each that fails.

    The cases share the fixtures: use it where no case leaves anything behind.
    """
    names = (names,) if isinstance(names, str) else names
    assert values, "there is no case"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_all(*arguments: Any, **fixtures: Any) -> None:
            failures = []
            for value in values:
                case = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(*arguments, **fixtures, **case)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"case: {case}")
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(values)} cases failed", failures)

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run_all

    return decorate
