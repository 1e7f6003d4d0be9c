"""The chip table."""

from __future__ import annotations

import pytest

from pallas_rungs.compilers.chips import (
    CHIPS,
    CURRENT_CHIPS,
    GPU,
    GPU_CHIPS,
    TPU,
    TPU_CHIPS,
    Chip,
    chip_named,
)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("v5e", "v5e"),
        ("V7X", "tpu7x"),
        ("tpu v5 lite", "v5e"),
        (" v6e ", "v6e"),
        ("v5p", "v5p"),
        ("H100", "h100"),
        ("sm_90a", "h100"),
        ("sm100a", "b200"),
        ("sm80", "a100"),
        ("NVIDIA B200", "b200"),
    ],
)
def test_names_aliases_and_device_kinds(given: str, name: str) -> None:
    assert chip_named(given).name == name


def test_an_unknown_chip_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown chip 'v9'.*v5e.*tpu7x \(or v7x\).*h100"):
        chip_named("v9")


def test_no_name_means_two_chips() -> None:
    names = [n for chip in CHIPS for n in {chip.name.lower(), *chip.aliases, chip.device_kind}]
    assert len(names) == len(set(names))
    assert set(CURRENT_CHIPS) <= {chip.name for chip in TPU_CHIPS}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_topologies_go_from_small_to_large_and_the_first_is_for_one_device(chip: Chip) -> None:
    sizes = [size for size, _ in chip.topologies]
    assert sizes == sorted(set(sizes))
    assert chip.topology == chip.topologies[0][1]


def test_each_chip_is_of_one_machine_and_each_machine_has_its_default() -> None:
    assert {chip.machine for chip in TPU_CHIPS} == {TPU}
    assert {chip.machine for chip in GPU_CHIPS} == {GPU}
    for machine in (TPU, GPU):
        assert chip_named(machine.default_chip).machine is machine
    assert [chip.compute_capability for chip in GPU_CHIPS] == ["9.0", "10.0", "8.0"]
    assert not any(chip.compute_capability for chip in TPU_CHIPS)
