"""The window of a block: jax's own words for it are what a kernel is handed in the interpreter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.practice import block_window
from pallas_rungs.practice.block_window import held, random_settings

SETTINGS = random_settings(seed=3, count=12)


def handed(setting, array):
    """The block that the program at a setting's place reads under ``interpret=True``."""
    seen = {}

    def note(place, block):
        seen[tuple(int(i) for i in place)] = np.asarray(block)

    def kernel(x_ref, o_ref):
        place = jnp.stack([pl.program_id(axis) for axis in range(len(setting.grid))])
        jax.debug.callback(note, place, x_ref[...])
        o_ref[...] = jnp.zeros_like(o_ref)

    pl.pallas_call(
        kernel,
        grid=setting.grid,
        in_specs=[pl.BlockSpec(setting.block_shape, setting.index_map)],
        out_shape=jax.ShapeDtypeStruct((1,), jnp.float32),
        interpret=True,
    )(array)
    jax.effects_barrier()
    return seen[setting.place]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_window_holds_what_a_kernel_is_handed(setting):
    array = np.arange(np.prod(setting.array_shape), dtype=np.float32).reshape(setting.array_shape)
    window = array[held(setting)]
    block = handed(setting, array)
    assert block.ndim == window.ndim
    np.testing.assert_array_equal(block[tuple(slice(n) for n in window.shape)], window)
    assert np.isnan(block).sum() == block.size - window.size


def test_settings_are_the_same_for_the_same_seed_and_reach_every_kind():
    settings = random_settings(seed=12, count=block_window.DRAWN)
    assert [str(s) for s in settings] == [str(s) for s in random_settings(12, block_window.DRAWN)]
    kinds = {type(dim) for s in settings for dim in s.block_shape}
    assert kinds == {int, type(None), pl.Blocked, pl.Element, pl.Squeezed}
    assert any(_hangs_over(setting) for setting in settings)


def _hangs_over(setting):
    sizes = iter(block_window.mapping_of(setting).transformed_block_aval.shape)
    return any(
        isinstance(part, slice) and part.stop - part.start < next(sizes) for part in held(setting)
    )


def test_blocks_that_begin_outside_are_never_drawn():
    for setting in random_settings(seed=5, count=60):
        for part, length in zip(held(setting), setting.array_shape, strict=True):
            start = part.start if isinstance(part, slice) else part
            assert 0 <= start < length


def test_a_function_that_raises_is_told_with_the_setting():
    def nothing(block_shape, index_map, place, array_shape):
        return None

    with pytest.raises(AssertionError, match=r"for block \(8, 128\).* raised TypeError"):
        block_window.check(nothing)


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        (lambda window: window[:1], "one entry for each axis"),
        (lambda window: tuple(p.start for p in window), "wants a slice"),
    ],
)
def test_other_shapes_of_an_answer_are_told(changed, hint):
    def held_by(*setting):
        return changed(block_window.solution(*setting))

    with pytest.raises(AssertionError, match=hint):
        block_window.check(held_by)
