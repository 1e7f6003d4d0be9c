"""The package says what its modules are for, and forgets none."""

from __future__ import annotations

import pkgutil

from pallas_rungs import performance


def test_each_module_is_named_in_the_package() -> None:
    modules = [it.name for it in pkgutil.iter_modules(performance.__path__) if not it.ispkg]
    assert len(modules) > 20
    assert [name for name in modules if f"`{name}`" not in (performance.__doc__ or "")] == []
