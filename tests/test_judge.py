"""The transformers library as judge: what it builds on the meta device has as many numbers as we count.

It is an optional extra (`judge`); without it these tests are skipped.
"""

import csv
import json
from pathlib import Path

import pytest

from cotune import count
from cotune.config import read_config

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")
DATA = Path(__file__).parent / "data"
SHIPPED = Path(count.__file__).parent / "data" / "models"
with (DATA / "models.csv").open(newline="", encoding="utf-8") as table:
    ROWS = {row["id"]: row for row in csv.DictReader(table)}
# The library has no code of its own for these; their layers are those of the family named here.
BUILT_AS = {"kimi_k2": "deepseek_v3", "deepseek_ref": "deepseek_v4", "mimo": "qwen2"}


def text_config(id):
    row = ROWS[id]
    path = SHIPPED / f"{row['shipped']}.json" if row["shipped"] else DATA / "configs" / f"{id.replace('/', '--')}.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    text = config.get("text_config", config)
    return {key: value for key, value in text.items() if key not in ("quantization_config", "auto_map")}


def library_config(keys):
    family = keys["model_type"]
    rest = {key: value for key, value in keys.items() if key != "model_type"}
    return transformers.AutoConfig.for_model(BUILT_AS.get(family, family), **rest)


def numbers_in(config):
    """Learned numbers of the model the library builds: parameters, and the buffers of floats it saves with them."""
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    saved, buffers = model.state_dict(), dict(model.named_buffers())
    steered = sum(saved[name].numel() for name in saved if name in buffers and saved[name].is_floating_point())
    return sum(parameter.numel() for parameter in model.parameters()) + steered


@pytest.mark.parametrize("id", ROWS)
def test_the_library_builds_as_many_parameters(id):
    keys = text_config(id)
    ours = count.parameters(read_config({"tie_word_embeddings": False} | keys)).total
    assert ours == numbers_in(library_config(keys))


@pytest.mark.parametrize("id", ROWS)
def test_what_the_library_saves_again_reads_as_the_same_model(id):
    keys = text_config(id)
    saved = json.loads(json.dumps(library_config(keys).to_dict(), default=str))
    assert read_config(saved).layers == read_config({"tie_word_embeddings": False} | keys).layers


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("llama", {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
        ("qwen3_moe", {"mlp_only_layers": [0, 3], "decoder_sparse_step": 2, "num_experts": 16, "head_dim": 96}),
        ("qwen3_next", {"num_hidden_layers": 7, "linear_num_key_heads": 4, "linear_num_value_heads": 8}),
        ("deepseek_v3", {"num_hidden_layers": 5, "first_k_dense_replace": 2, "q_lora_rank": None}),
        ("gpt_oss", {"num_hidden_layers": 3, "num_local_experts": 8, "sliding_window": 64}),
        ("olmo2", {"num_hidden_layers": 2}),
        ("olmo3", {"num_hidden_layers": 8}),
        ("exaone4", {"num_hidden_layers": 8, "num_key_value_heads": 8}),
        ("glm4_moe", {"num_hidden_layers": 3, "head_dim": 128, "use_qk_norm": True, "attention_bias": True}),
        ("gemma3_text", {"num_hidden_layers": 12}),
        ("qwen2_moe", {"num_hidden_layers": 4, "num_experts": 12, "decoder_sparse_step": 2}),
    ],
)
def test_configs_that_no_one_published_are_counted_right_too(family, keys):
    config = transformers.AutoConfig.for_model(family, **keys)
    saved = json.loads(json.dumps(config.to_dict(), default=str))
    assert count.parameters(read_config(saved)).total == numbers_in(config)
