"""What the code of each model family fixes and its config.json does not say.

Source: the modeling files of the transformers library 5.24; tests/test_judge.py compares the counts.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """What the code of a model family fixes and its config does not say.

    qk_norm  : "", "unweighted", "head" (one weight per channel of a head), "all" (one per channel of all heads)
               or "said" (by use_qk_norm, which must then be there)
    qkv_bias, o_bias : value where the config has no attention_bias; o_bias None follows qkv_bias
    attention : "" full or windowed, "latent", "sparse", "compressed"; norms : norm vectors per layer
    kinds    : what the code builds beside full attention: "window", "chunk", "linear"
    all_windowed : a sliding_window holds for every layer
    moe      : experts must be there; without it a config has them only if it says so
    expert_width : the key of one expert's width; dense_width : of a dense layer
    shared   : "" none, "count" (n_shared_experts), "width" (shared_expert_intermediate_size), "count and width"
               (n_shared_experts and moe_shared_expert_intermediate_size), "one" (never said)
    head_dim : True where it must be given, as hidden_size / heads would be wrong; needs : more keys it must give
    """

    qk_norm: str = ""
    qkv_bias: bool = False
    o_bias: bool | None = None
    attention: str = ""
    norms: int = 2
    gated_attention: bool = False
    sinks: bool = False
    kinds: tuple[str, ...] = ()
    all_windowed: bool = False
    gated: bool = True
    expert_width: str = "moe_intermediate_size"
    dense_width: str = "intermediate_size"
    moe: bool = False
    shared: str = ""
    shared_gate: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    selection_bias: bool = False
    tied: bool | None = None
    head_dim: bool = False
    needs: tuple[str, ...] = ()


_WINDOW = ("window",)
_MISTRAL = {"all_windowed": True, "kinds": _WINDOW}
_QWEN35 = {"qk_norm": "head", "gated_attention": True, "head_dim": True, "kinds": ("linear",)}
_DEEPSEEK = {"attention": "latent", "moe": True, "shared": "count", "needs": ("intermediate_size",)}
_GEMMA4_SWITCHES = ("hidden_size_per_layer_input", "num_kv_shared_layers", "use_double_wide_mlp")

FAMILIES = {
    "llama": Family(),
    "mistral": Family(**_MISTRAL),
    "mixtral": Family(**_MISTRAL, expert_width="intermediate_size", moe=True),
    "qwen2": Family(qkv_bias=True, o_bias=False, kinds=_WINDOW),
    "qwen2_moe": Family(qkv_bias=True, o_bias=False, shared="width", shared_gate=True, moe=True),
    "qwen3": Family(qk_norm="head", head_dim=True, kinds=_WINDOW),
    "qwen3_moe": Family(qk_norm="head", head_dim=True, moe=True),
    "exaone4": Family(qk_norm="head", kinds=_WINDOW),
    "olmo2": Family(qk_norm="all"),
    "olmo3": Family(qk_norm="all", kinds=_WINDOW),
    "glm4_moe": Family(
        qk_norm="said",
        o_bias=False,
        moe=True,
        shared="count",
        selection_bias=True,
        head_dim=True,
        needs=("intermediate_size",),
    ),
    "gemma3_text": Family(qk_norm="head", norms=4, head_dim=True, tied=True, kinds=_WINDOW, needs=("sliding_window",)),
    "qwen3_next": Family(**_QWEN35, shared="width", shared_gate=True, moe=True),
    "qwen3_5_text": Family(**_QWEN35),
    "qwen3_5_moe_text": Family(**_QWEN35, shared="width", shared_gate=True, moe=True),
    "deepseek_v2": Family(**_DEEPSEEK),
    "deepseek_v3": Family(**_DEEPSEEK, selection_bias=True),
    "deepseek_v32": Family(**_DEEPSEEK | {"attention": "sparse"}, selection_bias=True),
    "glm_moe_dsa": Family(**_DEEPSEEK | {"attention": "sparse"}, selection_bias=True),
    "deepseek_v4": Family(
        **_DEEPSEEK | {"attention": "compressed", "needs": ()}, selection_bias=True, tied=False, head_dim=True
    ),
    "minimax_m2": Family(qk_norm="all", expert_width="intermediate_size", selection_bias=True, head_dim=True, moe=True),
    "mimo": Family(qkv_bias=True, o_bias=False, kinds=_WINDOW),
    "gpt_oss": Family(
        moe=True,
        qkv_bias=True,
        sinks=True,
        expert_width="intermediate_size",
        expert_bias=True,
        router_bias=True,
        head_dim=True,
        kinds=_WINDOW,
        needs=("sliding_window",),
    ),
    "llama4_text": Family(
        moe=True,
        qk_norm="unweighted",
        expert_width="intermediate_size",
        dense_width="intermediate_size_mlp",
        shared="one",
        tied=False,
        kinds=("chunk",),
        needs=("attention_chunk_size", "intermediate_size_mlp"),
    ),
    "gemma4_text": Family(qk_norm="head", norms=4, head_dim=True, kinds=_WINDOW, needs=_GEMMA4_SWITCHES),
    "nemotron-nas": Family(),
    "nemotron_h": Family(norms=1, gated=False, shared="count and width", selection_bias=True, head_dim=True),
}
SAME_AS = {"kimi_k2": "deepseek_v3", "deepseek_ref": "deepseek_v4"}
SAME_AS |= {"qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text", "gemma4": "gemma4_text"}
SAME_AS |= {"gemma3": "gemma3_text", "llama4": "llama4_text", "kimi_k25": "deepseek_v3"}
