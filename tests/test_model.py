"""A model made by hand: what its parts refuse."""

from dataclasses import FrozenInstanceError

import pytest

from cotune.model import Compressed, Dense, Full, Latent, Layer, Linear, Model, MoE, Sparse, StateSpace, Window

FULL = Full(heads=32, kv_heads=8, head_dim=128)
LATENT = Latent(heads=128, q_rank=1536, kv_rank=512, nope=128, rope=64, v_dim=128)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Full(32, 7, 128), "heads must be a multiple of kv_heads, got 32 heads and 7"),
        (lambda: Full(0, 1, 128), "Full.heads must be a whole number of at least 1, got 0"),
        (lambda: Full(32, 8, 128.0), "Full.head_dim must be a whole number of at least 1, got 128.0"),
        (lambda: Full(32, 8, True), "Full.head_dim must be a whole number of at least 1, got True"),
        (lambda: Window(FULL, 0), "Window.size must be a whole number of at least 1, got 0"),
        (lambda: Latent(128, -1, 512, 128, 64, 128), "Latent.q_rank must be a whole number of at least 0, got -1"),
        (lambda: Sparse(Latent(8, 0, 64, 8, 8, 8), 16, 4, 8), "q_rank must be at least 1"),
        (lambda: Sparse(LATENT, 2048, -1, 128), "Sparse.index_heads must be a whole number of at least 0"),
        (lambda: Compressed(64, 512, 1024, 7, 1024, 128), "heads must be a multiple of o_groups, got 64 heads and 7"),
        (lambda: Linear(16, 24, 128, 128, 4), "value_heads must be a multiple of key_heads, got 24, 16"),
        (lambda: StateSpace(64, 64, 7, 128, 4), "heads must be a multiple of groups, got 64 heads and 7 groups"),
        (lambda: Dense(-5), "Dense.width must be a whole number of at least 1, got -5"),
        (lambda: MoE(8, 9, 64), "top must be at most the number of experts, got 9 of 8"),
        (lambda: Layer(None, None), "a layer must have an attention or an ffn, got neither"),
        (lambda: Layer(FULL, None, norms=-1), "Layer.norms must be a whole number of at least 0, got -1"),
        (lambda: Model("m", 64, 100, False, ()), "layers must be a tuple of at least one Layer"),
        (lambda: Model("m", 64, 100, False, [Layer(FULL, None)]), "layers must be a tuple of at least one Layer"),
        (lambda: Model("m", 64, "100", False, (Layer(FULL, None),)), "Model.vocab must be a whole number"),
    ],
)
def test_a_part_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_models_are_frozen_and_equal_layers_are_one():
    model = Model("m", 4096, 1000, False, (Layer(FULL, Dense(64)), Layer(Full(32, 8, 128), Dense(64))))
    assert len(set(model.layers)) == 1
    with pytest.raises(FrozenInstanceError):
        model.hidden = 1
