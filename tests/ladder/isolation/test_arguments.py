"""Arguments as text."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from pallas_rungs.ladder.arguments import ArgumentError, check_size, make_inputs, parse_arguments


def test_dtypes_shapes_and_scalars() -> None:
    specs = parse_arguments(" f32[256, 512],bf16[ 512,512 ], i32, i32[], S8[4], pred[2,2], F16[3]")
    assert [(spec.dtype, spec.shape) for spec in specs] == [
        ("float32", (256, 512)),
        ("bfloat16", (512, 512)),
        ("int32", ()),
        ("int32", ()),
        ("int8", (4,)),
        ("bool", (2, 2)),
        ("float16", (3,)),
    ]
    assert ", ".join(map(str, specs[:3])) == "f32[256,512], bf16[512,512], i32[]"


def test_literals_pass_as_they_are() -> None:
    values = make_inputs(parse_arguments("128, -1.5, True, 'relu', None, f32[2]"))
    assert values[:5] == (128, -1.5, True, "relu", None)
    assert values[5].shape == (2,)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("f32[3", 4, "closing ]"),
        ("f32[3]]", 7, "comma or the end"),
        ("f32[a]", 5, "whole number; 'a'"),
        ("f32[3,]", 7, "whole number; ''"),
        ("f32[-1]", 5, "whole number"),
        ("f32[0,4]", 5, "at least 1"),
        ("f32[3] f32[3]", 8, "comma"),
        ("f32[3],", 8, "an argument such as"),
        (",f32", 1, "an argument such as"),
        ("f33[3]", 1, "'f33' is none. The dtypes are f64, f32"),
        ("float[3]", 1, "'float' is none"),
        ("f64[3]", 1, "write f32, or set JAX_ENABLE_X64=1"),
        ("i64[3]", 1, "write i32"),
        ("i32[3]{4}", 7, "such as {0:4}"),
        ("i32[3]{4:4}", 7, "is empty"),
        ("i32[3]{0:4", 7, "closing }"),
        ("i32[3]{0:0.5}", 7, "whole numbers"),
        ("i8[3]{0:129}", 6, "within that of int8, {-128:128}"),
        ("u4[3]{-1:4}", 6, "within that of uint4, {0:16}"),
        ("f32[3]{0:inf}", 7, "finite ends"),
        ("f32[3]{-1e308:1e308}", 7, "finite ends"),
        ("f32(3,4)", 4, "square brackets, such as f32[256,512]"),
        ("'open", 1, "an argument such as"),
    ],
)
def test_what_does_not_parse_is_shown_with_its_place(
    text: str, position: int, message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_arguments(text)
    said = str(caught.value)
    assert f"at character {position}:" in said
    assert message in said
    assert said.endswith("\n  " + " " * (position - 1) + "^")


def test_the_whole_range_of_every_integer_type_can_be_asked_for() -> None:
    text = "u64[9]{0:18446744073709551616}, i64[9]{-9223372036854775808:9223372036854775808}"
    values = make_inputs(parse_arguments(f"{text}, u4[9]{{0:16}}, i8[9]{{-128:128}}", x64=True))
    assert [value.shape for value in values] == [(9,)] * 4


def test_arrays_larger_than_the_machines_memory_are_refused_before_they_are_made() -> None:
    check_size(parse_arguments("i8[1024,1024], 7"))
    with pytest.raises(
        ArgumentError, match=r"takes 8,388,608 GiB, and this machine has .* smaller"
    ):
        check_size(parse_arguments("i8[1048576,1048576,1024]"))


def test_64_bit_types_where_jax_has_them() -> None:
    assert parse_arguments("f64[3]", x64=True)[0].dtype == "float64"


def test_the_same_seed_gives_the_same_inputs() -> None:
    specs = parse_arguments("f32[4,4], bf16[8], i8[16]")
    first, again, other = make_inputs(specs, 1), make_inputs(specs, 1), make_inputs(specs, 2)
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    assert first[1].dtype == np.dtype(ml_dtypes.bfloat16)


def test_integers_stay_in_range() -> None:
    text = "f32[64,96], i32[32,16], i32[100], i8[1000], u8[1000], i32[1000]{-5:3}, bool[99]"
    _, wide, short, i8, u8, ranged, flags = make_inputs(parse_arguments(text))
    assert wide.min() >= 0
    assert wide.max() < 16
    assert set(np.unique(short)) == {0, 1, 2, 3}
    assert (i8.min(), u8.min()) == (-100, 0)
    assert (u8.max(), u8.dtype) == (199, np.uint8)
    assert (ranged.min(), ranged.max()) == (-5, 2)
    assert flags.dtype == np.bool_


def test_a_range_bounds_floats_too() -> None:
    (value,) = make_inputs(parse_arguments("f32[1000]{0.5:1}"))
    assert value.min() >= 0.5
    assert value.max() <= 1


def test_arguments_by_name_come_last_and_once() -> None:
    specs = parse_arguments("f32[8], scale = 0.5, mask=bool[8], mode='max'")
    assert [spec.name for spec in specs] == ["", "scale", "mask", "mode"]
    assert [str(spec) for spec in specs] == ["f32[8]", "0.5", "bool[8]", "'max'"]
    with pytest.raises(ArgumentError, match="at character 12: expected a name: scale= before"):
        parse_arguments("scale=0.5, f32[8]")
    with pytest.raises(ArgumentError, match="at character 6: expected n only once"):
        parse_arguments("n=1, n=2")
    with pytest.raises(ArgumentError, match="expected an argument such as"):
        parse_arguments("n=")
