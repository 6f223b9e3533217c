"""Exercises and quiz of lesson 03. Right answers are computed here from cotune, never typed."""

from dataclasses import replace

from cotune import gemm, roofline
from cotune.config import model_named
from cotune.teach.grade import numeric, within
from cotune.teach.quiz import Question
from cotune.teach.running_case import FIRST, calibrated_rates

CUTS = (1, 2, 4, 8, 16)
SMALL = 3072  # the larger of the article's two 80 % points


def _ceiling():
    n = 2048
    ridge = roofline.ridge("gb300", "bf16")
    return numeric(
        "gemm_shapes-1",
        "Least K at which the layer can become compute-bound",
        "elements",
        ridge * n / (n - ridge),
        slips=((ridge, "That would be the answer for an endless N. Writing C takes bytes too."),),
    )


def _aspect():
    n, k = 53248 // 8, 16384
    return numeric(
        "gemm_shapes-2",
        "How many times longer one side is than the other",
        "times",
        gemm.aspect(n, k),
        slips=(
            (gemm.aspect(53248, 16384), "That is the matrix before it is cut."),
            (gemm.aspect(53248, 2048), "Up projections share out their outputs, so N is cut, not K."),
        ),
    )


def _slip():
    model = model_named("llama-3.1-8b")
    right = model.layers[0].ffn.width / model.hidden
    return numeric(
        "gemm_shapes-3",
        "The factor that the tool should accept",
        "times",
        right,
        slips=((4, "That is what the tool wanted; then N would be 16,384."), (3, "Then N would be 12,288.")),
    )


def expert_cut():
    """How many times its fair share each of 8 GPUs takes for an eighth of an expert of DeepSeek-V3, 512 tokens."""
    hidden, width = 7168, model_named("deepseek-v3").layers[-1].ffn.width
    whole, part = (gemm.calibrated(512, hidden, k, "gb300", "nvfp4").total for k in (width, width // 8))
    return 8 * part / whole


def _expert():
    right = expert_cut()
    return numeric(
        "gemm_shapes-4",
        "GPU time of eight parts over that of the whole",
        "times",
        right,
        tolerance=0.02,
        slips=(
            (1, "That is the ideal of equal parts. Compute both times."),
            (right / 8, "That is one part. Eight GPUs work on it."),
        ),
    )


def smallest_side(tp, model="llama-3.1-405b"):
    """The smallest side of the linear layers in the blocks of a model, cut over so many GPUs; Q, K and V are one."""
    return min(min(x.n, x.k) for x in gemm.fused_layers(model_named(model), tp) if x.part != "head")


def _widest():
    right = max(tp for tp in CUTS if smallest_side(tp) >= SMALL)
    return numeric(
        "gemm_shapes-5",
        "The widest cut that keeps every side",
        "GPUs",
        right,
        slips=(
            (8, "The attention output has K = 16,384 / 8 = 2048 then."),
            (2, "That keeps all sides, but a wider cut does so too. Did you take K and V apart from Q?"),
            (1, "Two GPUs already keep every side. Look at the layer with the fewest inputs, and cut on."),
            (16, "The attention output has K = 16,384 / 16 = 1024 then."),
        ),
    )


GOALS = {"user": 200, "share": 0.75}  # tokens/s per user, and of the throughput that one GPU alone gives


def meets(tp, batch=256):
    """Whether the running case in NVFP4, cut over so many GB300, meets both goals with 256 requests."""
    (user, gpu), (_, alone) = (calibrated_rates(replace(FIRST, format="nvfp4"), "gb300", batch, n) for n in (tp, 1))
    return user >= GOALS["user"] and gpu >= GOALS["share"] * alone


def _cut():
    good = [tp for tp in CUTS if meets(tp)]
    return within(
        "gemm_shapes-6",
        "GPUs to cut the running case over",
        "GPUs",
        min(good),
        max(good),
        below="Users wait too long: the weights are read by too few GPUs.",
        above="Users are served fast enough, but each GPU gives too little: its matrices got small.",
    )


EXERCISES = {e.id: e for e in (_ceiling(), _aspect(), _slip(), _expert(), _widest(), _cut())}


def _quiz():
    return (
        Question(
            "A layer has a small K. You send it more tokens. What happens to its share of peak?",
            (
                ("it rises to 100 %", "Each result still needs only few multiplications for the bytes it writes."),
                ("it rises, and stops at a ceiling that K sets", "2 N K / (b_A K + b_C N): no M in it."),
                ("it falls", "More tokens share the reading of the weights; they do no harm."),
            ),
            1,
        ),
        Question(
            "Which shape loses most in prefill, at the same number of weights?",
            (
                ("N = K", "Squares are the measure here."),
                ("N four times K", "Measured in NVFP4 that is as fast as the square."),
                ("K sixteen times N", "Long inputs are loaded and quantized for few outputs."),
            ),
            2,
        ),
        Question(
            "Looking back at lesson 02: which of these raises the ideal intensity of a layer with large N and K?",
            (
                ("more tokens", "They share the reading of the weights, until the ridge and beyond."),
                ("a chip with more bandwidth", "That moves the ridge, not the layer."),
                ("a wider format", "It moves more bytes for the same FLOP."),
            ),
            0,
        ),
    )


QUIZ = _quiz()
