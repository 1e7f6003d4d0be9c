"""A rival computes what the kernel's own float64 reference says."""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.kernels import flash_attention_forward, layer_norm, matmul_gelu, rms_norm, softmax
from pallas_rungs.performance import rivals

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X, ROW = normal(16, 256), normal(256)
Q = normal(2, 64, 32)


@pytest.mark.parametrize(
    ("rival", "reference", "arguments", "options"),
    [
        (rivals.matmul, np.matmul, (X, normal(256, 128)), {}),
        (rivals.matmul_gelu, matmul_gelu.matmul_gelu_reference, (X, normal(256, 128)), {}),
        (rivals.softmax, softmax.softmax_reference, (X,), {}),
        (rivals.layer_norm, layer_norm.layer_norm_reference, (3 + X, ROW, normal(256)), {}),
        (rivals.rms_norm, rms_norm.rms_norm_reference, (X, ROW), {}),
        *(
            (
                rivals.attention,
                lambda *args, causal: flash_attention_forward.flash_attention_forward_reference(
                    *args, causal=causal
                )[0],
                (Q, normal(2, 64, 32), normal(2, 64, 32)),
                {"causal": causal},
            )
            for causal in (False, True)
        ),
    ],
)
def test_a_rival_does_the_kernels_task(rival, reference, arguments, options):
    found = rival(*map(jnp.asarray, arguments), **options)
    assert found.dtype == arguments[0].dtype
    np.testing.assert_allclose(found, reference(*arguments, **options), rtol=1e-4, atol=1e-4)


def test_a_rival_rounds_once_to_the_dtype_of_its_first_argument():
    x = jnp.asarray(X, jnp.bfloat16)
    found = rivals.softmax(x)
    exact = rivals.softmax(x.astype(jnp.float32))
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, exact.astype(jnp.bfloat16))
