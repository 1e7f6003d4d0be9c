"""The shipped measurements: what a file is called, what an entry tells, what is compared."""

import json
import math
from pathlib import Path

import pytest

from pallas_rungs import extras
from pallas_rungs.performance import shipped
from pallas_rungs.performance.shipped import Entry

KEY = {
    "lhs": "bf16[8,4]",
    "rhs": "bf16[2,4,16]",
    "group_sizes": {"num_groups": 2, "total_size": 8},
    "precision": "DEFAULT",
    "return_residuals": False,
}


def measured(**configs):
    return {
        json.dumps({"block": int(name[1:])}): {"evaluation_times_ms": times}
        for name, times in configs.items()
    }


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A tokamax with two implementations measured for a call, and one class."""
    data = tmp_path / "tokamax" / "data" / "autotuning" / "nvidia_b200"
    data.mkdir(parents=True)
    other = KEY | {"return_residuals": True}
    for name, entries in {
        "pallas_mosaic_gpu_ragged_dot": {
            json.dumps(KEY): measured(b64=[5.0, 1.0, 2.0], b32=[4.0, 4.0, 1.0]),
            json.dumps(other): {},
        },
        "ragged_dot": {
            json.dumps(dict(reversed(KEY.items()))): measured(b0=[9.0, 9.0, 9.0]),
            json.dumps(other): measured(b0=[1.0, 1.0, 1.0]),
        },
    }.items():
        (data / f"{name}.json").write_text(json.dumps(entries))
    info = tmp_path / "tokamax-9.8.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tokamax\nVersion: 9.8.7\n")
    source = tmp_path / "tokamax" / "_src"
    source.mkdir()
    (source / "mosaic.py").write_text("class PallasMosaicGpuRaggedDot(Base):\n  pass\n")
    (source / "mosaic_test.py").write_text("class RaggedDot:\n  pass\n")
    monkeypatch.setenv(extras.variable("tokamax"), str(tmp_path))
    shipped.shipped.cache_clear()
    shipped.readers.cache_clear()
    yield tmp_path
    shipped.shipped.cache_clear()
    shipped.readers.cache_clear()


def test_an_entry_has_the_median_of_each_configuration_and_the_fastest(library):
    entries = shipped.shipped("B200")
    assert [entry.implementation for entry in entries] == [
        "pallas_mosaic_gpu_ragged_dot",
        "pallas_mosaic_gpu_ragged_dot",
        "ragged_dot",
        "ragged_dot",
    ]
    first, second = entries[:2]
    assert first.medians == {'{"block": 64}': 2.0, '{"block": 32}': 4.0}
    assert first.fastest == ({"block": 64}, 2.0)
    assert second.fastest is None
    assert first.shapes == "lhs bf16[8,4], rhs bf16[2,4,16], 2 groups"


def test_a_median_says_whose_it_is_and_that_nobody_dated_it(library):
    entry, without = shipped.shipped("B200")[:2]
    assert without.quantity is None
    median = entry.quantity
    assert str(median) == "2 ms"
    said = median.provenance.caption()
    assert said.startswith("measurement, on B200: lhs bf16[8,4], rhs bf16[2,4,16], 2 groups;")
    assert "tokamax 9.8.7; on a day that is not known; code of tokamax 9.8.7" in said


def test_calls_meet_by_key_whatever_the_order_of_its_names(library):
    (race,) = shipped.races("B200", "ragged dot")
    assert [entry.kind for entry in race.entries] == ["Mosaic GPU", "XLA"]
    assert race.winner.fastest[1] == 2.0
    assert shipped.races("B200", "ragged dot", among=("Mosaic GPU",)) == ()
    assert shipped.races("B200", "attention") == ()


def test_a_file_is_read_by_the_class_of_its_name_and_by_no_test(library):
    readers = shipped.readers()
    assert readers["pallas_mosaic_gpu_ragged_dot"] == "tokamax._src.mosaic"
    assert "ragged_dot" not in readers


@pytest.mark.parametrize(
    ("implementation", "kind", "operation"),
    [
        ("pallas_mosaic_gpu_flash_attention_vjp", "Mosaic GPU", "attention, vjp"),
        ("pallas_tpu_mhc_pre", "Mosaic TPU", ""),
        ("pallas_triton_gated_linear_unit", "Pallas-Triton", "gated linear unit"),
        ("triton_normalization", "Triton", "normalisation"),
        ("jax_nn_dot_product_attention", "jax.nn", "attention"),
        ("chunked_xla_linear_softmax_cross_entropy_loss", "XLA", "cross entropy"),
    ],
)
def test_a_name_tells_what_a_kernel_is_written_for_and_its_operation(
    implementation, kind, operation
):
    entry = Entry("H100", implementation, {}, {})
    assert (entry.kind, entry.operation) == (kind, operation)


def test_masks_are_told_with_the_shapes():
    arrays = {"q": "bf16[8]", "mask": {"causal_mask": {"offset": 0}}}
    assert Entry("H100", "x", arrays, {}).shapes == "q bf16[8], causal"
    arrays["mask"] = {"causal_mask": None, "bool_mask": "bool[8,8]"}
    assert Entry("H100", "x", arrays, {}).shapes == "q bf16[8], masked"
    assert Entry("H100", "x", {"group_sizes": [3, 5]}, {}).shapes == "2 groups"


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="nothing is shipped for 'v4'; there is A100, H100"):
        shipped.shipped("v4")
    monkeypatch.setenv(extras.variable("tokamax"), str(tmp_path))
    with pytest.raises(extras.ExtraMissingError, match="make tokamax"):
        shipped.data_folder()


@pytest.mark.skipif(bool(extras.why_missing("tokamax")), reason="tokamax is needed: make tokamax")
def test_every_folder_and_file_of_the_installed_library_is_read():
    folder = shipped.data_folder()
    assert {path.name for path in folder.iterdir()} == set(shipped.CHIPS)
    files = {
        (shipped.CHIPS[path.parent.name], path.stem): len(json.loads(path.read_text("utf-8")))
        for path in folder.rglob("*.json")
    }
    found: dict[tuple[str, str], int] = {}
    for entry in shipped.all_shipped():
        place = (entry.chip, entry.implementation)
        found[place] = found.get(place, 0) + 1
        assert all(math.isfinite(ms) and ms > 0 for ms in entry.medians.values())
    assert found == {place: n for place, n in files.items() if n}
    assert Path(folder).is_relative_to(extras.folder("tokamax"))
