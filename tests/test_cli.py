"""The command line: what it prints adds up, and what it cannot do it says in one line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cotune
from cotune import count
from cotune.cli import _layer_lines, _scaled, main
from cotune.config import model_named, model_names, read_config

KEYS = {
    *("name", "layers", "total_parameters", "active_parameters", "active_parameters_with_embedding", "weight_bytes"),
    *("kv_bytes_first_token", "kv_bytes_per_token", "kv_bytes_context", "state_bytes_per_sequence"),
    *("flop_per_token_decode", "kv_bytes_reserved", "quantization_config", "format", "kv_format", "context", "tp"),
}
SHIPPED = Path(count.__file__).parent / "data" / "models"


def described(capsys, *arguments):
    assert main(["describe", *arguments]) == 0
    return capsys.readouterr().out


def test_json_has_every_key_and_the_counts(capsys):
    options = ("--json", "--format", "nvfp4", "--kv-format", "fp8", "--context", "65536", "--tp", "8")
    got = json.loads(described(capsys, "deepseek-v3", *options))
    assert set(got) == KEYS
    model = model_named("deepseek-v3")
    assert got["name"] == "deepseek-v3" and got["layers"] == 61
    assert got["total_parameters"] == 671_026_419_200
    assert got["active_parameters"] == 36_625_618_432
    assert got["active_parameters_with_embedding"] == 37_552_297_472
    assert got["weight_bytes"] == count.weight_bytes(model, "nvfp4", tp=8).total
    assert got["kv_bytes_first_token"] == got["kv_bytes_per_token"] == 35136
    assert got["kv_bytes_context"] == 35136 * 65536
    assert got["state_bytes_per_sequence"] == 0
    assert got["quantization_config"] == "fp8"
    assert (got["format"], got["kv_format"], got["context"], got["tp"]) == ("nvfp4", "fp8", 65536, 8)


@pytest.mark.parametrize("name", model_names())
def test_the_printed_parts_sum_to_the_printed_totals(capsys, name):
    text = described(capsys, name)
    blocks = text.split("\n\n")[1:]
    assert len(blocks) == 10
    for block in blocks:
        values = [float(value.replace(",", "")) for value in re.findall(r"^  [a-zA-Z -]+?\s{2,}([\d,.]+)", block, re.M)]
        assert values and sum(values[:-1]) == pytest.approx(values[-1], abs=0.5)
        assert re.search(r"^  total ", block, re.M)


CONFIGS = sorted([*SHIPPED.glob("*.json"), *(Path(__file__).parent / "data" / "configs").glob("*.json")])


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_layers_that_differ_are_described_in_different_words(path):
    model = read_config(path)
    lines = [line.split(" x ")[1] for line in _layer_lines(model)]
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (999, "B", ""),
        (73728, "B", "  (73.73 kB)"),
        (999_999, "B", "  (1 MB)"),
        (16_060_522_496, "B", "  (16.06 GB)"),
        (1_342_052_838_400, "B", "  (1.342 TB)"),
        (8_030_261_248, "", "  (8.03 billion)"),
        (1_026_408_232_448, "", "  (1.026 trillion)"),
    ],
)
def test_a_total_is_shown_in_a_unit_of_its_size(value, unit, shown):
    assert _scaled(value, unit) == shown


def test_a_quantized_checkpoint_is_said_to_be_counted_in_the_chosen_format(capsys):
    path = next(path for path in CONFIGS if path.stem == "nvidia--GLM-5.1-NVFP4")
    assert "its quantization_config (NVFP4) is ignored; --format says" in described(capsys, str(path))
    assert "quantization_config" not in described(capsys, "qwen3-8b")


def test_the_help_tells_every_json_key(capsys):
    with pytest.raises(SystemExit):
        main(["describe", "--help"])
    help = capsys.readouterr().out
    assert {key for key in KEYS if not re.search(rf"\b{key}\b", help)} == set()


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0 and capsys.readouterr().out == f"cotune {cotune.__version__}\n"


def test_a_name_may_be_written_in_capitals(capsys):
    assert described(capsys, "DeepSeek-V3") == described(capsys, "deepseek-v3")


def test_a_path_and_a_name_say_the_same(capsys):
    by_path = described(capsys, str(SHIPPED / "gpt-oss-120b.json"))
    assert by_path == described(capsys, "gpt-oss-120b")


def test_per_gpu_figures_say_so(capsys):
    assert "per GPU of 4" in described(capsys, "qwen3-8b", "--tp", "4")
    assert "per GPU" not in described(capsys, "qwen3-8b")


def test_an_assumption_is_told_on_stderr_and_json_stays_json(capsys, tmp_path):
    config = json.loads((SHIPPED / "llama-3.1-8b.json").read_text(encoding="utf-8")) | {"model_type": "made_up"}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert main(["describe", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["total_parameters"] == 8_030_261_248
    assert err.startswith("cotune: warning: model_type 'made_up' is not known")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "model_type is missing; the"),
        ("[]", "must be a JSON object"),
        ('{"model_type": "llama"}', "is missing"),
    ],
)
def test_a_bad_config_is_one_line_on_stderr_and_exit_2(capsys, tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    assert main(["describe", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("cotune: error: ") and message in err and err.count("\n") == 1


def test_an_unknown_model_lists_the_known_ones(capsys):
    assert main(["describe", "gpt-5"]) == 2
    assert "neither a file nor the name of a model; known: deepseek-r1, " in capsys.readouterr().err


def test_a_long_name_is_not_told_in_full(capsys):
    assert main(["describe", "x" * 5000]) == 2
    err = capsys.readouterr().err
    assert err.startswith('cotune: error: "xxxxx') and len(err) < 1000


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "folder"])
def test_what_is_no_file_is_one_line_and_exit_2(capsys, tmp_path, kind):
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    assert main(["describe", str(path)]) == 2
    err = capsys.readouterr().err
    assert ("holds no config.json" if kind == "folder" else "is not a regular file") in err and err.count("\n") == 1


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "0", "1e3", "1099511627777"])
def test_a_context_beyond_all_models_is_told_with_the_range(capsys, number):
    with pytest.raises(SystemExit) as caught:
        main(["describe", "qwen3-8b", "--context", number])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert "is not a whole number from 1 to 1099511627776" in err and len(err) < 500


@pytest.mark.parametrize("option", [("--tp", "0"), ("--context", "-1"), ("--context", "1.5"), ("--format", "int3")])
def test_a_bad_option_ends_with_exit_2_and_names_it(capsys, option):
    with pytest.raises(SystemExit) as caught:
        main(["describe", "qwen3-8b", *option])
    assert caught.value.code == 2
    assert option[0] in capsys.readouterr().err


def test_it_runs_as_a_program():
    command = [sys.executable, "-m", "cotune.cli", "describe", "no-such-model"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("option", ["", " --json"])
def test_an_output_that_is_full_is_one_line_and_exit_1(option):
    command = f"{sys.executable} -m cotune.cli describe llama-3.1-8b{option} > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("cotune: error: the output cannot be written: ")


def test_a_reader_that_stops_early_is_no_error():
    command = f"{sys.executable} -m cotune.cli describe deepseek-v3 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("deepseek-v3: 61 layers") and done.stderr == ""
