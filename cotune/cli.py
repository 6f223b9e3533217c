"""The command line.

`cotune describe CONFIG` says what a model is made of and what it costs to hold and to run; `cotune validate` says how
far the models are from measured times. It ends with 0; with 2 after one line that says what is wrong with the input;
with 1 where the output cannot be written.
"""

import argparse
import json
import os
import sys
import warnings
from collections import Counter

from cotune import __version__, count, layer
from cotune.config import model_named, model_names, read_config
from cotune.formats import FORMATS
from cotune.keys import LARGEST, short
from cotune.model import in_words

DEFAULT_CONTEXT = 8192
LARGEST_NUMBER = LARGEST["max_position_embeddings"]
PREFIXES = ("", "k", "M", "G", "T", "P", "E")
NUMERALS = ("", "thousand", "million", "billion", "trillion")
JSON_KEYS = """
JSON keys, all totals: name; layers; total_parameters; active_parameters and active_parameters_with_embedding (of one
token, the input embedding left out or counted); weight_bytes; kv_bytes_first_token; kv_bytes_per_token (once windows
are full); kv_bytes_context and kv_bytes_reserved (of one sequence of --context tokens: needed, and what an engine
with pages of one kind sets aside); state_bytes_per_sequence; flop_per_token_decode; quantization_config (what the
config says of the format of its own checkpoint, null if nothing; no count uses it); and the options behind the
numbers: format, kv_format, context, tp. Bytes and FLOP are of one GPU, the fullest of tp.
"""


def _size(text):
    """A whole number above zero from the command line."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and 1 <= int(text) <= LARGEST_NUMBER):
        raise argparse.ArgumentTypeError(f"{short(text)} is not a whole number from 1 to {LARGEST_NUMBER}")
    return int(text)


def _format(text):
    if text not in FORMATS:
        raise argparse.ArgumentTypeError(f"{short(text)} is not one of {', '.join(FORMATS)}")
    return text


def _parser():
    parser = argparse.ArgumentParser(prog="cotune", description="How the shape of a language model meets its hardware.")
    parser.add_argument("--version", action="version", version=f"cotune {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    describe = commands.add_parser("describe", help="parameters, bytes and FLOP of a model", epilog=JSON_KEYS)
    known = ", ".join(FORMATS)
    describe.add_argument("config", metavar="CONFIG", help="a config.json, a folder with one, or the name of a model")
    describe.add_argument(
        "--format", default="bf16", type=_format, metavar="FORMAT", help=f"of the weights: {known} (bf16)"
    )
    describe.add_argument("--kv-format", default="bf16", type=_format, metavar="FORMAT", help="of the cache (bf16)")
    describe.add_argument("--context", type=_size, default=DEFAULT_CONTEXT, help="tokens in the cache (default: 8192)")
    describe.add_argument("--tp", type=_size, default=1, help="GPUs of tensor parallelism; bytes and FLOP are per GPU")
    describe.add_argument("--json", action="store_true", help="print JSON instead of a table")
    describe.set_defaults(run=_describe)
    validate = commands.add_parser("validate", help="how far the models are from measured times")
    validate.add_argument("--data", metavar="DIR", help="a folder of CSV files like data/silicon (default: that one)")
    validate.add_argument("--op", choices=("gemm", "decode_gqa"), help="score only this kind of table")
    validate.add_argument("--cv", action="store_true", help="fit again with each group left out in turn (a minute)")
    validate.add_argument("--json", action="store_true", help="print JSON instead of a table")
    validate.set_defaults(run=_validate)
    return parser


def _model(config):
    if os.path.exists(config):
        return read_config(config)
    if config.lower() in model_names():
        return model_named(config.lower())
    raise ValueError(f"{short(config)} is neither a file nor the name of a model; known: {', '.join(model_names())}")


def _results(model, args):
    """Every Breakdown that `describe` prints, by its JSON key."""
    kv = {"format": args.kv_format, "tp": args.tp}
    return {
        "total_parameters": count.parameters(model),
        "active_parameters": count.active_parameters(model),
        "active_parameters_with_embedding": count.active_parameters(model, embedding=True),
        "weight_bytes": count.weight_bytes(model, args.format, tp=args.tp),
        "kv_bytes_first_token": count.kv_bytes_first_token(model, **kv),
        "kv_bytes_per_token": count.kv_bytes_per_token(model, **kv),
        "kv_bytes_context": count.kv_bytes(model, args.context, **kv),
        "kv_bytes_reserved": count.kv_bytes_reserved(model, args.context, **kv),
        "state_bytes_per_sequence": count.state_bytes(model, tp=args.tp),
        "flop_per_token_decode": layer.decode_flops(model, args.context, tp=args.tp),
    }


def _number(value):
    """A whole number as int, so that JSON shows 140 and not 140.0."""
    return int(value) if value == int(value) else value


def _scaled(value, unit):
    """`value` with four digits and a prefix, or a word where there is no unit; nothing below a thousand."""
    names = PREFIXES if unit else NUMERALS
    power = 0
    while round(value / 1000**power, 2) >= 1000 and power + 1 < len(names):
        power += 1
    return f"  ({value / 1000**power:.4g} {names[power]}{unit})" if power else ""


def _layer_lines(model):
    """The layers in words, those of equal kinds together."""
    kinds = Counter((layer.attention, layer.ffn) for layer in model.layers)
    for parts, many in kinds.items():
        yield f"  {many:>4} x {'; '.join(in_words(part) for part in parts if part is not None)}"


def _table(model, results, args):
    """The readable form: every result with its parts, which add up to it."""
    titles = {
        "total_parameters": ("parameters", ""),
        "active_parameters": ("active parameters, input embedding left out", ""),
        "active_parameters_with_embedding": ("active parameters, input embedding counted", ""),
        "weight_bytes": (f"weight bytes, matrices of layers in {args.format}, the rest in bf16", "B"),
        "kv_bytes_first_token": (f"KV bytes of the first token, {args.kv_format}", "B"),
        "kv_bytes_per_token": ("KV bytes per further token, once windows are full", "B"),
        "kv_bytes_context": (f"KV bytes of one sequence of {args.context} tokens", "B"),
        "kv_bytes_reserved": ("KV bytes an engine with unified pages reserves for it", "B"),
        "state_bytes_per_sequence": ("constant state bytes of one sequence", "B"),
        "flop_per_token_decode": (f"FLOP to decode one token at {args.context} tokens", "FLOP"),
    }
    where = f", per GPU of {args.tp}" if args.tp > 1 else ""
    yield f"{model.name}: {len(model.layers)} layers, hidden {model.hidden}, vocabulary {model.vocab}"
    yield from _layer_lines(model)
    if model.quantized:
        yield f"  its quantization_config ({model.quantized}) is ignored; --format says which format is counted"
    if model.mtp:
        yield f"  {model.mtp} layer(s) for multi-token prediction are not counted"
    for key, (title, unit) in titles.items():
        parts = {name: value for name, value in results[key].parts.items() if value}
        yield f"\n{title}{where if unit else ''}"
        for name, value in parts.items():
            yield f"  {name:<20}{_number(value):>26,} {unit}".rstrip()
        total = results[key].total
        yield f"  {'total':<20}{_number(total):>26,} {unit}".rstrip() + _scaled(total, unit)


def _describe(args):
    model = _model(args.config)
    results = _results(model, args)
    if not args.json:
        return "\n".join(_table(model, results, args))
    shown = {"name": model.name, "layers": len(model.layers)}
    shown |= {key: _number(result.total) for key, result in results.items()}
    shown["quantization_config"] = model.quantized or None
    shown |= {"format": args.format, "kv_format": args.kv_format, "context": args.context, "tp": args.tp}
    return json.dumps(shown, indent=2)


SCORES = {"mape": "mean", "median_ape": "median", "p90_ape": "p90", "bias": "bias"}
FOLDS = {"fold_mean": "fold mean", "fold_worst": "worst fold"}


def _validate(args):
    from cotune import calibration  # here, since describe needs no measurements

    rows = calibration.validate(args.data or calibration.silicon.FOLDER, args.op, cv=args.cv)
    if args.json:
        return json.dumps(rows, indent=2)
    scores = SCORES | (FOLDS if args.cv else {})
    lines = [f"{'op':<11}{'chip':<7}{'format':<11}{'mode':<12}{'n':>6}" + "".join(f"{t:>11}" for t in scores.values())]
    for row in rows:
        numbers = (f"{row[key]:+11.1f}" if key == "bias" else f"{row[key]:11.1f}" for key in scores if key in row)
        lines.append(
            f"{row['op']:<11}{row['chip']:<7}{row['format']:<11}{row['mode']:<12}{row['n']:>6}{''.join(numbers)}"
        )
    return "\n".join(["error of the model, percent of the measured time", *lines])


def main(argv=None):
    """Run the command line on `argv`; return its exit status."""
    args = _parser().parse_args(argv)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            text = args.run(args)
        except ValueError as error:
            print(f"cotune: error: {error}", file=sys.stderr)
            return 2
    for warning in found:
        print(f"cotune: warning: {warning.message}", file=sys.stderr)
    return _write(text)


def _write(text):
    """Print `text`; return 0, or 1 where the output does not take it."""
    try:
        print(text, flush=True)
    except (OSError, UnicodeEncodeError) as error:
        if isinstance(error, OSError):  # else the interpreter would try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            return 0
        print(f"cotune: error: the output cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
