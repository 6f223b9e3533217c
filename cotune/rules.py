"""The 22 rules of the course as data: what each says, where it stops being true, and what to compute.

They follow the guidelines G1 to G7 of NVIDIA's article; "intro" marks what the article says outside a guideline.
Source: NVIDIA, AI Model Co-Design: Hardware-Friendly LLM Design (2026-07-10); the wording is our own.
"""

from dataclasses import dataclass

INTRO = "intro"

GUIDELINES = {
    INTRO: "What the article says before and between its numbered guidelines.",
    "G1": "Keep weight matrices near-square at a fixed number of parameters, with neither side small.",
    "G2": "Make every dimension a multiple of 128 at least, and of 256 or 512 where you can.",
    "G3": "Prefer fewer, larger operations: widen before you deepen, as far as accuracy holds.",
    "G4": "Make the expensive operations fit for low precision when the model is deployed.",
    "G5": "Use many sparse experts, and spread them over many GPUs.",
    "G6": "Repeat a regular pattern of layers, so that pipeline stages come out equal.",
    "G7": "Choose how to split attention apart from how you split the feed-forward layers.",
}


@dataclass(frozen=True)
class Rule:
    """One rule of the course.

    id              : 1 to 22
    guideline       : a key of GUIDELINES
    sentence        : what to do, in one sentence
    caveat          : where it stops being true, in one sentence
    number_to_check : the quantity that tells whether a model keeps the rule
    lesson          : stem of the lesson that teaches it
    """

    id: int
    guideline: str
    sentence: str
    caveat: str
    number_to_check: str
    lesson: str

    @property
    def anchor(self):
        """Name of the heading in the lesson that states the rule, such as "rule-3"."""
        return f"rule-{self.id}"


RULES = (
    Rule(
        1,
        INTRO,
        "Judge a design by its whole curve of tokens/s per GPU against tokens/s per user, not by one point on it.",
        "The area under that curve depends on the scale of its axes, so an area alone proves nothing.",
        "the front of (tokens/s per user, tokens/s per GPU) and the area under it",
        "01_frontier",
    ),
    Rule(
        2,
        INTRO,
        "First find where the time goes at your context length and service goal, then improve the largest share.",
        "Shares of the time do not add up where operations overlap.",
        "Amdahl's speed-up 1 / (1 - f + f/g), when a share f of the time gets g times faster",
        "01_frontier",
    ),
    Rule(
        3,
        INTRO,
        "Compare the FLOP per byte of an operation with the chip's ridge point, counting every byte that really moves.",
        "The roofline is optimistic: measured kernels are nearly always slower.",
        "arithmetic intensity against the ridge point peak / bandwidth, both in FLOP/B",
        "02_roofline",
    ),
    Rule(
        4,
        "G1",
        "At a fixed number of parameters keep a weight matrix near-square, with neither outputs N nor inputs K small.",
        "In decode a wide output beats a square, and what counts as small belongs to one chip and one format.",
        "min(N, K) against 2560 to 3072 (80% of the rate) and 6144 (all of it), on GB300 in NVFP4",
        "03_gemm_shapes",
    ),
    Rule(
        5,
        "G2",
        "Make every dimension a multiple of 128, better of 256 or 512, as it is after the model is cut across GPUs.",
        "Libraries can choose a narrower tile, which softens the loss.",
        "(d / TP) % 128, and the tile efficiency M N / (bm ceil(M/bm) bn ceil(N/bn))",
        "04_alignment",
    ),
    Rule(
        6,
        "G2",
        "Choose sizes whose tiles fill the last wave, since a few tiles left over take as long as a full wave.",
        "Persistent and stream-K kernels share the leftover work out, which softens the loss.",
        "the wave efficiency tiles / (SM ceil(tiles / SM))",
        "04_alignment",
    ),
    Rule(
        7,
        "G2",
        "Put the head size, the vocabulary and the SwiGLU width on the same grid as every other dimension.",
        "Fused attention kernels hide much of what an odd head size costs.",
        "(h / n_q) % 64, vocabulary % 128, and 8h/3 rounded to the grid",
        "04_alignment",
    ),
    Rule(
        8,
        "G3",
        "At the same number of parameters take fewer, wider layers, as long as accuracy stays in its band.",
        "Some tasks gain from depth.",
        "the shortest time one layer can take, times the number of layers",
        "07_width_depth",
    ),
    Rule(
        9,
        INTRO,
        "Raise the batch until arithmetic limits the layer, then stop.",
        "The time between two tokens, or the memory for the KV cache, often stops you before that.",
        "M* = ridge b / 2 tokens, with b bytes per weight",
        "02_roofline",
    ),
    Rule(
        10,
        INTRO,
        "When decode reads a long context, first cut the KV-cache bytes that each token leaves behind.",
        "A single latent head (MLA) makes that cache small but cannot be split by heads, the worst case for TP.",
        "KV-cache bytes per token",
        "06_anatomy",
    ),
    Rule(
        11,
        "G7",
        "Split attention by heads over at most as many GPUs as there are KV heads.",
        "At short context extra copies of a KV head can still pay, since each GPU then reads fewer weights.",
        "copies of each KV head, max(1, TP / n_kv)",
        "09_sharding",
    ),
    Rule(
        12,
        "G7",
        "Choose the split of attention and the split of the feed-forward layers separately, on the same GPUs.",
        "It pays at long context and small batch.",
        "G = KVP TPA = TPF EP, the same number of GPUs seen both ways",
        "11_helix",
    ),
    Rule(
        13,
        "G7",
        "Split a long KV cache along the sequence, so that each GPU reads only its share of the tokens.",
        "With one latent head (MLA) the partial results that GPUs exchange are large.",
        "the KV read time, which falls as 1 / KVP, and the traffic, which does not grow with the context",
        "11_helix",
    ),
    Rule(
        14,
        "G7",
        "Hide the communication you add: let one request communicate while the next one computes.",
        "With one request there is nothing to hide it behind.",
        "B c + m against B (c + m), for B requests of compute time c and a shorter communication time m",
        "11_helix",
    ),
    Rule(
        15,
        "G4",
        "Make the heaviest operations ones that low precision can carry, and count the format's own bytes.",
        "Small layers can get slower, since quantizing their inputs takes time too.",
        "bits per element with block scales (4.5 for NVFP4), and Amdahl's speed-up over the linear layers",
        "05_low_precision",
    ),
    Rule(
        16,
        "G4",
        "Give layers that will be quantized dimensions NVFP4 takes unpadded, and list those kept in high precision.",
        "Which layers must stay in high precision differs from model to model.",
        "K % 16 = 0 (required), K % 64 = 0 and rows % 128 = 0 (no padding)",
        "05_low_precision",
    ),
    Rule(
        17,
        "G5",
        "Size a mixture of experts by the tokens each expert gets, and spread it over more GPUs to raise them.",
        "Nothing is gained where the expert GEMMs are not the bottleneck.",
        "C k / E tokens per expert, for C tokens at once and k of E experts each",
        "08_experts",
    ),
    Rule(
        18,
        "G5",
        "Cut large experts across GPUs (TP), and place small experts whole on different GPUs (EP).",
        "With a tiny batch EP leaves GPUs idle.",
        "H' / TP against the sizes of rule 4, for experts of width H'",
        "08_experts",
    ),
    Rule(
        19,
        "G5",
        "Count what expert parallelism adds: tokens sent out, results brought back, and the wait for the busiest GPU.",
        "How uneven the load is depends on the data being served.",
        "T k H (b_dispatch + b_combine) bytes, and the imbalance r = (max - mean) / mean",
        "08_experts",
    ),
    Rule(
        20,
        "G5",
        "For throughput give each GPU its own requests in attention (DP); for latency share each request (TP or KVP).",
        "With attention DP every GPU holds a copy of the attention weights.",
        "all-reduce bytes per token",
        "09_sharding",
    ),
    Rule(
        21,
        "G6",
        "Prefill a long prompt in chunks, through pipeline stages that repeat the same pattern of layers.",
        "Short prompts lose, since too few chunks leave stages idle.",
        "layers % (P period), and the mean over the longest time of a stage",
        "10_chunked_pipeline",
    ),
    Rule(
        22,
        "G6",
        "Shorten the later chunks, and run prefill and decode on separate GPUs, in the ratio of their rates.",
        "The last chunks can get too short to run efficiently.",
        "the next-chunk formula, and prefill : decode GPUs = (ISL / OSL) (decode rate / prefill rate)",
        "10_chunked_pipeline",
    ),
)


def rule(id):
    """Return the Rule numbered `id`.

    Raises ValueError where there is no such rule.

    >>> rule(9).guideline, rule(9).lesson, rule(9).anchor
    ('intro', '02_roofline', 'rule-9')
    """
    if isinstance(id, int) and not isinstance(id, bool) and 1 <= id <= len(RULES):
        return RULES[id - 1]
    raise ValueError(f"rule id must be a whole number from 1 to {len(RULES)}, got {id!r}")
