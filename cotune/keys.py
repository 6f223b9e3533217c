"""The keys of a config.json, handed out checked: a number where a number must be, and no key overlooked in silence."""

import json
import re

LARGEST = {"num_hidden_layers": 4096, "vocab_size": 2**24, "max_position_embeddings": 2**40}
LARGEST_SIZE = 2**20


class ConfigError(ValueError):
    """A config that cannot be read; the message names the key, its value and what would be right."""


class ConfigWarning(UserWarning):
    """A config that was read on an assumption that it does not state itself."""


# Keys that say nothing about which weights and caches there are.
_HARMLESS = """
_name_or_path architectures attention_probs_dropout_prob attn_implementation attn_logit_softcapping attn_scale
attn_temperature_tuning auto_map aux_loss_alpha bad_words_ids batch_size begin_suppress_tokens cache_implementation
chunk_size chunk_size_feed_forward
compression_config diversity_penalty do_sample dtype early_stopping encoder_no_repeat_ngram_size ep_size expert_dtype
exponential_decay_length_penalty final_logit_softcapping finetuning_task floor_scale hc_eps hc_sinkhorn_iters
hidden_act hidden_activation id2label ignore_index initial_context_length initializer_range is_decoder label2id
language_model_only layer_norm_epsilon length_penalty mamba_hidden_act max_length max_position_embeddings min_length
mlp_hidden_act mm_tokens_per_image model_type moe_shared_expert_overlap mrope_section
mtp_layers_block_type mtp_transformer_layers mtp_use_dedicated_embeddings n_group no_repeat_ngram_size norm_eps
norm_topk_prob num_beam_groups num_beams num_logits_to_keep num_return_sequences original_max_position_embeddings
output_attentions output_gate_type output_hidden_states output_router_logits output_scores partial_rotary_factor prefix
pretraining_tp problem_type quantization_config query_pre_attn_scalar remove_invalid_values repetition_penalty
rescale_prenorm_residual residual_in_fp32 return_dict return_dict_in_generate rms_norm_eps rotary_dim
routed_scaling_factor
router_jitter_noise scoring_func seq_aux suppress_tokens swiglu_alpha swiglu_limit task_specific_params temperature
tf_legacy_loss tie_encoder_decoder tokenizer_class top_p topk_group topk_method torch_dtype
torchscript transformers_version typical_p use_bfloat16 use_bidirectional_attention use_cache use_mamba_kernels
use_mrope use_mtp use_unified_vision_chunk video_placeholder vocab_size_per_layer_input
"""
HARMLESS = frozenset(_HARMLESS.split())
# Only endings that can name no part of the text model: `mtp_\w+` or `rope_\w+` would hide a width or a rank.
HARMLESS_PATTERN = re.compile(
    r"(vision|audio|video)_config|(vision|audio|image|video)_(soft_)?tokens?_per_(image|frame|second)"
    r"|(\w+_)?rope_(theta|scaling|parameters|interleave|type|local_base_freq)|time_step_(floor|limit|max|min|rank)"
    r"|\w+_token_(id|ids|index)|(\w+_)?dropout|\w+_loss_coef"
)
# Keys that are understood only where they switch something off.
ONLY = {
    "is_encoder_decoder": False,
    "replace_with_linear": False,
    "unshifted_sink": False,
    "use_prefill_window_in_sink_attention": False,
    "add_cross_attention": False,
    "pruned_heads": {},
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "hidden_size_per_layer_input": 0,
    "top_k": 50,  # the library once wrote its default for sampling into every file; another number may mean experts
}
REQUIRED = object()


class Keys:
    """The keys of one config: hands them out checked, and knows in the end which ones nobody asked for."""

    def __init__(self, data):
        self.data, self.used = data, set()

    def has(self, name):
        return self.data.get(name) is not None

    def value(self, name, default):
        self.used.add(name)
        value = self.data.get(name)
        if value is None and default is REQUIRED:
            raise ConfigError(f"{name} is missing; a config of this model_type must give it.")
        return default if value is None else value

    def need(self, names):
        """Refuse a config that leaves out one of `names`, even where null would do."""
        for name in names:
            if name not in self.data:
                raise ConfigError(f"{name} is missing; a config of this model_type must give it.")

    def named(self, names):
        """The first of `names` that is given: what to call this key in a message."""
        return next((name for name in names if self.has(name)), names[0])

    def integer(self, *names, default=REQUIRED, least=1, most=None):
        """The whole number under the first of `names` that is given; several names must agree."""
        given = [name for name in names if self.has(name)]
        if not given and default is REQUIRED:
            raise ConfigError(f"{' or '.join(names)} is missing; a config of this model_type must give it.")
        given = given or names[:1]
        values = [self.value(name, default) for name in given]
        for name, value in zip(given, values, strict=True):
            if value is default and not self.has(name):
                return default
            top = LARGEST.get(name, LARGEST_SIZE) if most is None else most
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= top:
                raise ConfigError(f"{name} is {short(value)}; it must be a whole number from {least} to {top}.")
        if len(set(values)) > 1:
            raise ConfigError(f"{' and '.join(given)} are {values}; they mean the same and must be equal.")
        return values[0]

    def number(self, name):
        """A finite number above zero."""
        value = self.value(name, REQUIRED)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
            raise ConfigError(f"{name} is {short(value)}; it must be a number above 0.")
        return value

    def nullable(self, name, least=1):
        """A whole number that may be null (the part does not exist) but may not be left out."""
        if name not in self.data:
            raise ConfigError(
                f"{name} is missing; it must be a whole number, or null where the model has no such part."
            )
        return self.integer(name, default=0, least=least)

    def flag(self, name, default=REQUIRED):
        value = self.value(name, default)
        if not isinstance(value, bool):
            raise ConfigError(f"{name} is {short(value)}; it must be true or false.")
        return value

    def word(self, name, known=None, default=REQUIRED):
        """A string, and one of `known` where that is given."""
        value = self.value(name, default)
        if self.has(name) and not (isinstance(value, str) and value in (known or [value])):
            right = f"one of {', '.join(known)}" if known else "a string"
            raise ConfigError(f"{name} is {short(value)}; it must be {right}.")
        return value

    def per_layer(self, name, n, kinds, extra=0):
        """A list with one entry per layer, translated by `kinds`; up to `extra` more (MTP layers) are cut off."""
        value = self.value(name, REQUIRED)
        if not isinstance(value, list) or not n <= len(value) <= n + extra:
            size = f"of {len(value)}" if isinstance(value, list) else f"but {short(value)}"
            raise ConfigError(f"{name} is not a list with one entry for each of the {n} layers, {size}.")
        for entry in value:
            if isinstance(entry, (bool, dict, list, float)) or entry not in kinds:
                known = ", ".join(str(kind) for kind in kinds)
                raise ConfigError(f"{name} holds {short(entry)}; each entry must be one of {known}.")
        return tuple(kinds[entry] for entry in value[:n])

    def indices(self, name, n):
        value = self.value(name, REQUIRED)
        whole = isinstance(value, list) and all(isinstance(i, int) and not isinstance(i, bool) for i in value)
        if not whole or not all(0 <= i < n for i in value):
            raise ConfigError(f"{name} is {short(value)}; it must be a list of layer numbers from 0 to {n - 1}.")
        return set(value)

    def skip(self, *names):
        """Sizes that a part leaves unread on purpose, for it does not depend on them."""
        for name in names:
            self.integer(name, default=None, least=0)

    def refuse_rest(self):
        """Refuse a key that switches on something not understood, and any key that no part of the model has read."""
        for name, only in ONLY.items():
            value = self.value(name, only)
            if type(value) is not type(only) or value != only:
                raise ConfigError(f"{name} is {short(value)}; only {json.dumps(only)} is understood.")
        for name, value in self.data.items():
            known = name in self.used or name in HARMLESS or HARMLESS_PATTERN.fullmatch(name)
            if value is not None and not known:
                raise ConfigError(
                    f"{name} is {short(value)}, but nothing that is understood of this model reads it. "
                    "Remove it if it changes neither weights nor caches."
                )


def short(value, most=60):
    """`value` as JSON, cut to at most `most` characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= most else text[: most - 3] + "..."
