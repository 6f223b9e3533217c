"""One linear layer as a matrix product C[M,N] = A[M,K] B[K,N]: M tokens, N outputs, K inputs.

A holds the activations, B the weights, C the result; each has its own number format.
All sizes may be numbers or arrays that broadcast. `time` is ideal: datasheet peak and bandwidth. `calibrated` counts
tiles and waves on the chip's SMs, with six parameters fitted on measurements.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from cotune import count, roofline
from cotune.arguments import one_of, positive
from cotune.chip import chip_named
from cotune.formats import format_named, multiply_unit
from cotune.parameters import KERNELS, gemm_parameters
from cotune.roofline import Work
from cotune.units import BITS_PER_BYTE

# What the kernels of a library have in common. Chosen once, with all measurements in view; fixed for all chips.
TILE_ROWS = (64, 128, 256)
TILE_COLUMNS = (64, 128, 256)
NARROW_COLUMNS = (32, *TILE_COLUMNS)  # kernels that cannot split K still have to fill the SMs with few tokens
NARROWEST = 16
LEAST_ROWS_FP4 = (
    128  # of the tensor cores that have FP4: a block-scaled multiplication takes 128 rows (PTX, tcgen05.mma)
)
DEPTH = 64  # elements of K that one step of a tile loads and multiplies
SPLIT_DEPTH = 256  # a part of K is at least this deep
MOST_SPLITS = 32
PARTIAL_BYTES = 4  # parts of a split K are added in FP32
TAIL = 0.25  # share of a last wave's idle time that is paid; persistent kernels start the next work early
BATCH = 1 << 14  # shapes worked on at a time, so that they stay in the processor's cache


@dataclass(frozen=True)
class Traffic:
    """Bytes one GEMM moves to and from HBM, every operand once: `read_a`, `read_b`, `write_c`."""

    read_a: float
    read_b: float
    write_c: float

    @property
    def read(self):
        return self.read_a + self.read_b

    @property
    def total(self):
        return self.read + self.write_c


def flops(m, n, k):
    """Return 2 M N K: one multiplication and one addition per output and input.

    >>> f"{flops(256, 8192, 512) / 15e15 * 1e6:.2f}"  # us of math on GB300, as NVIDIA 2026-07-10, Table 2 prints it
    '0.14'
    """
    return 2 * positive("m", m) * positive("n", n) * positive("k", k)


def traffic(m, n, k, *, a, b, c):
    """Return the Traffic M K b_A + N K b_B + M N b_C with b in bytes per element, block scales included.

    a, b, c : formats of A, B and C.

    >>> t = traffic(2048, 8192, 512, a="nvfp4", b="nvfp4", c="fp8")
    >>> f"{t.read / 8e12 * 1e6:.2f} {t.write_c / 8e12 * 1e6:.2f}"  # us on GB300, as Table 2 prints them
    '0.37 2.10'
    """
    m, n, k = positive("m", m), positive("n", n), positive("k", k)
    return Traffic(
        read_a=m * k * format_named(a).bytes_per_element,
        read_b=n * k * format_named(b).bytes_per_element,
        write_c=m * n * format_named(c).bytes_per_element,
    )


def work(m, n, k, *, a, b, c):
    """Return the Work of one GEMM: its FLOP and its HBM bytes."""
    return Work(flops(m, n, k), traffic(m, n, k, a=a, b=b, c=c).total)


def intensity(m, n, k, *, a, b, c):
    """Return the arithmetic intensity 2MNK / (M K b_A + N K b_B + M N b_C) in FLOP/B.

    >>> round(intensity(4096, 4096, 4096, a="bf16", b="bf16", c="bf16"), 2)  # a square: 2H / 3b
    1365.33
    """
    return work(m, n, k, a=a, b=b, c=c).intensity


def time(m, n, k, chip, *, a, b, c):
    """Return the ideal roofline.Time of one GEMM in seconds, with its bound.

    chip : Chip or its id.
    Errors: ValueError for an unknown chip or format, a chip that cannot multiply that format, a size not above 0.

    >>> time(2048, 8192, 512, "gb300", a="nvfp4", b="nvfp4", c="fp8").bound
    'memory'
    """
    return roofline.time(work(m, n, k, a=a, b=b, c=c), chip, multiply_unit(a, b))


def tokens_at_ridge(n, k, chip, *, a, b, c):
    """Return the M at which the intensity of an (N, K) layer reaches the ridge point; inf where it never does.

    2 M N K = R (M K b_A + N K b_B + M N b_C), so M = R b_B N K / (2 N K - R (K b_A + N b_C)).
    For large N and K this is the rule of thumb M* = R b_B / 2.

    >>> round(tokens_at_ridge(1e9, 1e9, "gb300", a="bf16", b="bf16", c="bf16"), 1)
    312.5
    """
    n, k = np.asarray(positive("n", n)), np.asarray(positive("k", k))
    r = roofline.ridge(chip, multiply_unit(a, b))
    b_a, b_b, b_c = (format_named(f).bytes_per_element for f in (a, b, c))
    room = 2 * n * k - r * (k * b_a + n * b_c)
    tokens = np.where(room > 0, r * b_b * n * k / np.where(room > 0, room, 1), np.inf)
    return float(tokens) if tokens.ndim == 0 else tokens


def linear_layers(tokens, hidden, ffn):
    """Return the four GEMMs of a plain transformer block as {name: (M, N, K)}.

    tokens : T; hidden : H; ffn : H', the width of the feed-forward layer.
    Source: NVIDIA, AI Model Co-Design (2026-07-10), Table 1.

    >>> linear_layers(256, 8192, 512)["FFN-2"]
    (256, 8192, 512)
    """
    tokens, hidden, ffn = (
        value if isinstance(value, int) and value > 0 and value is not True else positive(name, value)
        for name, value in (("tokens", tokens), ("hidden", hidden), ("ffn", ffn))
    )
    return {
        "QKV": (tokens, 3 * hidden, hidden),
        "attention output": (tokens, hidden, hidden),
        "FFN-1": (tokens, ffn, hidden),
        "FFN-2": (tokens, hidden, ffn),
    }


@dataclass(frozen=True)
class Linear:
    """One kind of linear layer of a model on one GPU: N outputs, K inputs, and how many such matrices it holds.

    part : what it belongs to in a breakdown. For routed experts a token uses only some of the `copies`.
    """

    part: str
    name: str
    n: int
    k: int
    copies: int


def model_layers(model, tp=1):
    """Return the Linear layers of a Model as the fullest of `tp` GPUs holds them: a tuple, in the model's order.

    Layers that share out their inputs (attention output, FFN down) keep N and have K cut; all others have N cut.

    >>> from cotune.config import model_named
    >>> [(x.name, x.n, x.k) for x in model_layers(model_named("llama-3.1-8b"), tp=8) if x.part == "ffn"]
    [('up and gate', 3584, 4096), ('down', 4096, 1792)]
    """
    found = []
    for weight, layers in count.weights(model):
        if weight.matrix:
            n, k, copies = weight.n, weight.k, max(weight.copies, 1) * layers  # a tied head is multiplied as well
            held = count.pieces(weight.cut, tp)
            n, k = (n, k // weight.cut * held) if weight.rows else (n // weight.cut * held, k)
            found.append(Linear(weight.part, weight.name, n, k, copies))
    return tuple(found)


def fused_layers(model, tp=1):
    """Return the `model_layers` of a dense Model with Q, K and V as one GEMM, as engines run them.

    Raises ValueError for a model with routed experts: those run as grouped GEMMs, which `calibrated` does not cover.

    >>> from cotune.config import model_named
    >>> [(x.name, x.n, x.copies) for x in fused_layers(model_named("llama-3.1-8b"))][:2]
    [('q, k and v', 6144, 32), ('o', 4096, 32)]
    """
    found = []
    for layer in model_layers(model, tp):
        if layer.part == "experts":
            raise ValueError(f"{model.name} has routed experts, which run as grouped GEMMs; take a dense model")
        if layer.name in ("k", "v") and found and found[-1].name in ("q", "q, k and v"):
            before = found.pop()
            layer = replace(before, name="q, k and v", n=before.n + layer.n)
        found.append(layer)
    return tuple(found)


def wider(layers, factor):
    """Return Linear layers of a twin `factor` times as wide and 1 / factor^2 as deep: as many weights in its layers.

    layers : as `fused_layers` gives them; the head keeps its vocabulary, so it grows with the width.
    Raises ValueError where a size or the number of layers would not be whole.

    >>> wider((Linear("attention", "o", 4096, 4096, 32),), 2)
    (Linear(part='attention', name='o', n=8192, k=8192, copies=8),)
    """
    factor, found = positive("factor", factor), []
    for x in layers:
        head = x.part == "head"
        sizes = (x.n if head else x.n * factor, x.k * factor, x.copies if head else x.copies / factor**2)
        if any(size != int(size) for size in sizes):
            raise ValueError(f"factor {factor} leaves {x.name} not whole: {sizes[:2]} in {sizes[2]} layers")
        found.append(Linear(x.part, x.name, *(int(size) for size in sizes)))
    return tuple(found)


def step_time(layers, tokens, chip, kernel="bf16"):
    """Return the calibrated time in seconds of all Linear layers of one step, one kernel after the other.

    The output head stays in BF16, as in published checkpoints.
    """
    kernels = {"head": "bf16"}
    return sum(x.copies * calibrated(tokens, x.n, x.k, chip, kernels.get(x.part, kernel)).total for x in layers)


# --- tiles, waves, alignment, shape ---


def tiles(m, n, tile):
    """Return how many tiles cover C: ceil(M / rows) ceil(N / columns).

    tile : (rows, columns) of C that one SM works on at a time.

    >>> tiles(2304, 1536, (256, 128))
    108.0
    """
    rows, columns = tile
    m, n = np.asarray(positive("m", m)), np.asarray(positive("n", n))
    return _plain(np.ceil(m / positive("rows", rows)) * np.ceil(n / positive("columns", columns)))


def tile_efficiency(m, n, tile):
    """Return the share of the tiles' elements that C needs: M N / (tiles * rows * columns).

    >>> round(tile_efficiency(128, 641, (128, 128)), 6)  # one column past a tile edge pays for 127 more
    0.834635
    """
    rows, columns = tile
    return positive("m", m) * positive("n", n) / (tiles(m, n, tile) * rows * columns)


def waves(tiles, sms):
    """Return how many rounds `sms` SMs need for so many tiles, one each at a time: ceil(tiles / sms).

    >>> waves(109, 108)
    2.0
    """
    return _plain(np.ceil(np.asarray(positive("tiles", tiles)) / positive("sms", sms)))


def wave_efficiency(tiles, sms):
    """Return the share of the waves' SMs that have a tile: tiles / (sms * waves).

    >>> round(wave_efficiency(109, 108), 5)  # A100: the 109th tile takes as long as the first 108
    0.50463
    """
    return positive("tiles", tiles) / (sms * waves(tiles, sms))


def rounds(tiles, sms):
    """Return the rounds that persistent kernels pay for so many tiles: max(1, w + TAIL (ceil(w) - w)), w = tiles / sms.

    They start the next work early, so that only TAIL of a last wave's idle time is lost; `waves` pays all of it.
    TAIL belongs to the calibrated model: an assumption that fits the measurements, not a property of a chip.

    >>> round(rounds(109, 108), 3), waves(109, 108)
    (1.257, 2.0)
    """
    return _plain(_rounds(np.asarray(positive("tiles", tiles)) / positive("sms", sms)))


def _rounds(share):
    return np.maximum(1, share + TAIL * (np.ceil(share) - share))


def alignment(size):
    """Return the largest power of two that divides a whole size.

    >>> alignment(2880), alignment(18432 // 32)  # gpt-oss' hidden size; DeepSeek-V3's FFN on 32 GPUs: not 128
    (64, 64)
    """
    whole = np.asarray(positive("size", size))
    if np.any(whole != np.floor(whole)) or np.any(whole >= 2**62):
        raise ValueError(f"size must be a whole number, got {size!r}")
    whole = whole.astype(np.int64)
    power = whole & -whole
    return int(power) if power.ndim == 0 else power


def shard(size, gpus):
    """Return the part of a dimension that each of `gpus` GPUs holds: size / gpus.

    Raises ValueError where it does not divide: libraries refuse such a cut or pad it.

    >>> shard(18432, 32)
    576
    """
    size, gpus = count.positive_whole("size", size), count.positive_whole("gpus", gpus)
    if size % gpus:
        raise ValueError(f"{size} does not divide among {gpus} GPUs; {size % gpus} would be left over")
    return size // gpus


def padded(size, multiple):
    """Return the next multiple at or above a size: ceil(size / multiple) multiple.

    >>> padded(8 * 4096 / 3, 256)  # width of Llama-2-7B's FFN: 8/3 of 4096, rounded up
    11008.0
    """
    multiple = positive("multiple", multiple)
    return _plain(np.ceil(np.asarray(positive("size", size)) / multiple) * multiple)


def elements_in(line, format):
    """Return how many elements of a format fill `line` bytes, block scales left out.

    >>> elements_in(128, "bf16"), elements_in(128, "fp8")  # A100 likes whole cache lines
    (64.0, 128.0)
    """
    return positive("line", line) * BITS_PER_BYTE / format_named(format).element_bits


def aspect(n, k):
    """Return how far an N x K matrix is from square: max(N / K, K / N), 1 for a square.

    >>> aspect(2048, 8192)
    4.0
    """
    ratio = np.asarray(positive("n", n)) / positive("k", k)
    return _plain(np.maximum(ratio, 1 / ratio))


def latency_floor(layers, kernels, fixed):
    """Return the time below which no batch gets a token: layers * kernels per layer * fixed seconds of each.

    >>> round(latency_floor(126, 2, 5e-6) * 1e6)  # us: two collectives of 5 us in each of 126 layers
    1260
    """
    return positive("layers", layers) * positive("kernels", kernels) * positive("fixed", fixed)


def floor_width(chip, kernel="bf16", kernels=4):
    """Return the width H at which reading a layer's 12 H^2 weights takes as long as its kernels' fixed times.

    12 H^2 b / bandwidth = kernels * fixed, so H = sqrt(kernels fixed bandwidth / (12 b)), with the fitted bandwidth
    and the fitted fixed time of the kernel. A narrower layer spends more than half of a small step on what is fixed.

    >>> round(floor_width("gb300", "bf16")), round(floor_width("gb300", "nvfp4"))
    (1482, 3877)
    """
    chip, p = chip_named(chip), gemm_parameters(chip, kernel)
    reached = p.bandwidth * chip.bandwidth
    weights = 12 * format_named(KERNELS[kernel].b).bytes_per_element
    return float(np.sqrt(positive("kernels", kernels) * p.fixed * reached / weights))


def _plain(value):
    """A number stays a number."""
    return float(value) if np.ndim(value) == 0 else value


# --- calibrated ---


@dataclass(frozen=True)
class KernelTime:
    """Calibrated time of one GEMM in seconds, numbers or arrays, and the plan behind it.

    math, load, memory     : tensor cores, loads from L2 into the SMs, HBM; they overlap into `overlapped`
    fixed, quantize, store, split : what comes before and after
    rows, columns, splits  : the tile and the number of parts of K
    """

    fixed: float
    quantize: float
    math: float
    load: float
    memory: float
    store: float
    split: float
    rows: float
    columns: float
    splits: float

    @property
    def overlapped(self):
        """(math^3 + load^3 + memory^3)^(1/3): the slowest, and more where two are about equal."""
        return _overlap(self.math, self.load, self.memory)

    @property
    def parts(self):
        """{name: seconds}; they add up to the total."""
        return {name: getattr(self, name) for name in ("fixed", "quantize", "overlapped", "store", "split")}

    @property
    def total(self):
        """Sum of the parts, in seconds."""
        return self.fixed + self.quantize + self.overlapped + self.store + self.split

    @property
    def bound(self):
        """Name of the largest: "math", "load", "memory", "fixed", "quantize", "store" or "split"."""
        names = ("math", "load", "memory", "fixed", "quantize", "store", "split")
        values = np.broadcast_arrays(*(getattr(self, name) for name in names))
        which = np.array(names)[np.argmax(values, axis=0)]
        return str(which) if which.ndim == 0 else which


def _overlap(*times):
    """The cube root of the sum of cubes; an exponent of 1 would be one after the other, infinity the slowest alone."""
    return _plain(np.cbrt(sum(t * t * t for t in times)))


@dataclass(frozen=True)
class _Rates:
    """What a kernel reaches on one chip: FLOP/s and B/s of one SM, B/s of the whole memory, bytes per element."""

    sms: int
    math: float
    load: float
    store: float
    memory: float
    a: float
    b: float
    c: float


def _rates(chip, kernel, p):
    a, b, c = (format_named(f).bytes_per_element for f in (kernel.a, kernel.b, kernel.c))
    sm = chip.peak("bf16") / chip.sm
    math = p.peak * chip.peak(multiply_unit(kernel.a, kernel.b)) / chip.sm
    return _Rates(chip.sm, math, p.load * sm, p.store * sm, p.bandwidth * chip.bandwidth, a, b, c)


def menu(chip, kernel="bf16"):
    """Return the tiles, (rows, columns) of C, that a kernel chooses from on a chip.

    BF16 kernels take any of 64, 128 and 256. Those of narrower formats have narrower tiles too, and on chips with FP4
    no tile of fewer than 128 rows. chip : Chip or its id; kernel : a key of KERNELS.

    >>> min(menu("gb300", "bf16")), min(menu("gb300", "nvfp4")), min(menu("h200", "fp8_block"))
    ((64, 64), (128, 16), (64, 16))
    """
    if KERNELS[one_of("kernel", kernel, KERNELS)].splits:
        return tuple(product(TILE_ROWS, TILE_COLUMNS))
    least = LEAST_ROWS_FP4 if chip_named(chip).figure("fp4").value is not None else min(TILE_ROWS)
    return (*product([rows for rows in TILE_ROWS if rows >= least], NARROW_COLUMNS), (least, NARROWEST))


def _filling(m, n, k, tile, sms):
    """How many parts to cut K into, so that the SMs have work: SMs / tiles, each part SPLIT_DEPTH deep or more."""
    free = np.floor(sms / (np.ceil(m / tile[0]) * np.ceil(n / tile[1])))
    return np.clip(np.minimum(free, np.floor(k / SPLIT_DEPTH)), 1, MOST_SPLITS)


def _on_the_sms(m, n, k, tile, splits, r):
    """Seconds of math, load, store and of adding up split parts, for tiles padded to whole ones."""
    rows, columns = tile
    share = np.ceil(m / rows) * np.ceil(n / columns) * splits / r.sms
    paid = _rounds(share)
    steps = paid * np.ceil(k / (splits * DEPTH)) * DEPTH
    math = steps * (2 * rows * columns / r.math)
    load = steps * ((rows * r.a + columns * r.b) / r.load)
    store = paid * (rows * columns * r.c / r.store)
    added = np.where(splits > 1, m * n * splits * (PARTIAL_BYTES / (r.load * r.sms)), 0)
    return math, load, store, added


def calibrated(m, n, k, chip, kernel="bf16", *, parameters=None):
    """Return the KernelTime of one GEMM: fixed + quantize + (math^3 + load^3 + memory^3)^(1/3) + store + split.

    With t tiles of rows x columns in waves of the chip's SMs, w = t / SMs and W = max(1, w + TAIL (ceil(w) - w)):
    math = W 2 rows columns K / (peak / SMs), load = W (rows b_A + columns b_B) K / SM's loads,
    store = W rows columns b_C / SM's stores, memory = all operands once / bandwidth, quantize ~ M K (2 + b_A).
    Tile and, for kernels that split K, the number of parts are those of `menu` that take the least time.

    chip : Chip or its id; kernel : a key of KERNELS; parameters : GemmParameters, else those shipped for both.
    Errors: ValueError for an unknown chip or kernel, arithmetic the chip lacks, a size not above 0, parameters of
    another kernel. How far it is from measurements stands in `parameters.error`.
    Source of the parameters: fitted on data/silicon/gemm.csv.

    >>> t = calibrated(16, 8192, 8192, "h200", "bf16")
    >>> round(t.total * 1e6), t.bound  # us; NVIDIA measured 35.7, the ideal is 28
    (36, 'memory')
    """
    chip, p = chip_named(chip), parameters or gemm_parameters(chip, kernel)
    if p.kernel != kernel:
        raise ValueError(f"parameters are of the kernel {p.kernel!r}, the kernel asked for is {kernel!r}")
    tiles, kernel = menu(chip, kernel), KERNELS[kernel]
    rates = _rates(chip, kernel, p)
    shape = np.broadcast_arrays(positive("m", m), positive("n", n), positive("k", k))
    flat = np.reshape(shape, (3, -1))
    starts = range(0, max(flat.shape[1], 1), BATCH)
    found = [_planned(flat[:, i : i + BATCH], rates, tiles, kernel, p) for i in starts]
    columns = [np.concatenate(column).reshape(shape[0].shape) for column in zip(*found, strict=True)]
    quantized = shape[0] * shape[2] * ((format_named("bf16").bytes_per_element + rates.a) / chip.bandwidth)
    quantize = np.zeros(shape[0].shape) if p.quantize is None else p.quantize * quantized
    return KernelTime(p.fixed, _plain(quantize), *(_plain(column) for column in columns))


def _planned(shape, r, tiles, kernel, p):
    """Math, load, memory, store, split, rows, columns and splits of the fastest plan for every shape of a batch."""
    m, n, k = shape
    memory = (m * k * r.a + n * k * r.b + m * n * r.c) / r.memory
    best, which, parts = np.full(m.shape, np.inf), np.zeros(m.shape, np.intp), np.ones(m.shape)
    for index, tile in enumerate(tiles):
        filling = _filling(m, n, k, tile, r.sms) if kernel.splits else 1
        for splits in (1, filling) if np.any(filling > 1) else (1,):
            math, load, store, added = _on_the_sms(m, n, k, tile, splits, r)
            total = _overlap(math, load, memory) + store + np.where(splits > 1, p.split or 0, 0) + added
            faster = total < best
            best = np.where(faster, total, best)
            which, parts = np.where(faster, index, which), np.where(faster, splits, parts)
    rows, columns = np.array(tiles, float)[which].T
    math, load, store, added = _on_the_sms(m, n, k, (rows, columns), parts, r)
    return math, load, memory, store, np.where(parts > 1, p.split or 0, 0) + added, rows, columns, parts


def model_times(model, tokens, chip, kernel="bf16", *, logits=1, kept=count.KEPT, tp=1):
    """Return the count.Breakdown of calibrated seconds of a Model's linear layers in one pass, on one of `tp` GPUs.

    tokens : rows of every layer but the head, which has `logits` rows: 1 in prefill, all tokens in decode.
    kernel : a key of KERNELS; parts named in `kept` run in BF16. Layers are those of `fused_layers`, and times of
    kernels add; attention itself is not here.
    Errors: ValueError for a model with routed experts, whose grouped GEMMs this model of one GEMM does not cover.

    >>> from cotune.config import model_named
    >>> found = model_times(model_named("llama-3.1-8b"), 16, "gb300", logits=16)
    >>> round(found.total * 1e3, 2)  # ms; its 15 GB over 8 TB/s are 1.88
    2.84
    """
    parts = {}
    for one in fused_layers(model, tp):
        rows, used = logits if one.part == "head" else tokens, "bf16" if one.part in kept else kernel
        seconds = one.copies * calibrated(rows, one.n, one.k, chip, used).total
        parts[one.part] = parts.get(one.part, 0) + seconds
    return count.Breakdown(parts)


def amdahl(share, speedup):
    """Return how many times faster the whole gets when a `share` of its time gets `speedup` times faster.

    1 / (1 - f + f / g), with f the share before the change and g the speed-up.

    >>> amdahl(0.77, 2.0)  # attention takes 77% of the time, and becomes twice as fast
    1.6260162601626016
    """
    share, speedup = positive("share", share), positive("speedup", speedup)
    if np.any(np.asarray(share) > 1):
        raise ValueError(f"share must be a part of the time, above 0 and at most 1, got {share}")
    return 1 / (1 - share + share / speedup)
