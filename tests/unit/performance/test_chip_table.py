"""The table of chips is the library's, asked as a lowering rule asks."""

import dataclasses

import pytest
from jax._src import tpu_info
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.compilers.chips import TPU_CHIPS
from pallas_rungs.performance import chip_table
from pallas_rungs.performance.chip_table import as_device, chip_facts, listed_chips


def test_every_chip_that_jax_lists_is_there_once():
    chips = listed_chips()
    assert len(chips) == len(pltpu.ChipVersion)
    assert len({chip.name for chip in chips}) == len(chips)
    for chip, version in zip(chips, pltpu.ChipVersion, strict=True):
        assert tpu_info.chip_version_from_device_kind(chip.device_kind) is version


@pytest.mark.parametrize("version", list(pltpu.ChipVersion), ids=str)
def test_each_number_is_the_librarys(version):
    (chip,) = [c for c, v in zip(listed_chips(), pltpu.ChipVersion, strict=True) if v is version]
    info = pltpu.get_tpu_info_for_chip(version, 1)
    assert (chip.lanes, chip.sublanes) == (info.num_lanes, info.num_sublanes)
    assert (chip.mxus, chip.mxu_side) == (info.num_mxus, info.mxu_column_size)
    assert (chip.vmem, chip.smem) == (info.vmem_capacity_bytes, info.smem_capacity_bytes)
    assert (chip.hbm, chip.bandwidth) == (info.hbm_capacity_bytes, info.mem_bw_bytes_per_second)
    assert chip.generation == info.generation
    stated = {
        "bfloat16": info.bf16_ops_per_second,
        "int8": info.int8_ops_per_second,
        "float8": info.fp8_ops_per_second,
        "int4": info.int4_ops_per_second,
    }
    assert chip.rates == {dtype: rate for dtype, rate in stated.items() if rate}
    assert 0 not in chip.rates.values()


def test_the_books_chips_are_among_them_by_the_same_names():
    for known in TPU_CHIPS:
        with as_device(known.device_kind, known.cores):
            info = pltpu.get_tpu_info()
        facts = chip_facts(known.name)
        assert (info.vmem_capacity_bytes, info.mem_bw_bytes_per_second) == (
            facts.vmem,
            facts.bandwidth,
        )


def test_the_ridge_is_one_rate_over_the_other():
    chip = dataclasses.replace(
        chip_facts("v5e"), bandwidth=10, rates={"bfloat16": 2400}, mxus=3, mxu_side=4
    )
    assert chip.ridge() == 240
    assert chip.implied_clock() == 2400 / (2 * 3 * 16)
    assert chip.implied_clock(2) == 2400 / (2 * 2 * 3 * 16)


def test_what_jax_does_not_state_is_said_and_not_zero():
    with pytest.raises(LookupError, match=r"v4: jax states no rate .* 'int8'; .* bfloat16"):
        chip_facts("v4").ridge("int8")


def test_an_unknown_chip_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"no TPU 'v9'; it lists v2, v3, .*tpu7x"):
        chip_facts("v9")


def test_a_chip_under_a_new_form_of_device_kind_is_named(monkeypatch):
    monkeypatch.setattr(chip_table, "chip_version_from_device_kind", lambda kind: None)
    with pytest.raises(ValueError, match="under none of the device kinds TPU v2, TPUv2"):
        listed_chips()
