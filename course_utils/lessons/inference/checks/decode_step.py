"""The check of `decode_step`: against a whole layer in one process, with two all-reduces for each token."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.torch_cases import drawn
from course_utils.trace.recorder import phase
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

Weights = dict[str, "Tensor"]
_RIGHT = "the numbers are right, but"
_CUT = {"qkv": 0, "qkv_bias": 0, "out": 1, "up": 0, "up_bias": 0, "down": 1}
"""Along which dimension the ranks share a weight; the others are whole on every rank."""
_KEYS, _VALUES = "the cached keys", "the cached values"
_TOLERANCE = {"float64": 1e-10, "float32": 1e-4}


def steps_of(function: Callable, weights: Weights, size: int, keys: Any, values: Any, xs: "Tensor", group: int) -> Any:
    """Call the learner's function for one token after another, with a cache that begins with `keys` and `values`.

    Args:
        group: ranks in a group of neighbours; 0 for all ranks, and no group.
    """
    import torch
    import torch.distributed as dist

    from course_utils.lessons.inference.decode_step import LayerPart, linear_of
    from course_utils.lessons.inference.kv_cache import LayerCache

    norms = []
    for name in ("norm_1", "norm_2"):
        norm = torch.nn.LayerNorm(xs.shape[1], dtype=xs.dtype)
        norm.weight.data, norm.bias.data = weights[name].clone(), weights[f"{name}_bias"].clone()
        norms.append(norm)
    layer = LayerPart(
        *norms,
        linear_of(weights["qkv"], weights["qkv_bias"]),
        linear_of(weights["out"]),
        weights["out_bias"],
        linear_of(weights["up"], weights["up_bias"]),
        linear_of(weights["down"]),
        weights["down_bias"],
        size,
    )
    kept, made = LayerCache(), []
    if keys is not None:
        kept.append(keys, values)
    own_group = (dist.new_subgroups(group)[0],) if group else ()
    with phase("tokens"), torch.no_grad():
        for x in xs:
            made.append(function(layer, x, kept, *own_group))
    found = {f"the output for token {number}": y for number, y in enumerate(made)}
    return found | {_KEYS: kept.keys, _VALUES: kept.values}


def whole_layer(weights: Weights, size: int, past: int, xs: "Tensor", past_kv: "tuple[Tensor, Tensor]") -> dict:
    """The same in one process: the whole layer, token by token, with all heads."""
    import torch
    from torch.nn.functional import gelu, layer_norm, linear

    keys, values = past_kv
    found: dict[str, Any] = {}
    for number, x in enumerate(xs):
        normed = layer_norm(x, x.shape, weights["norm_1"], weights["norm_1_bias"])
        by_head = linear(normed, weights["qkv"], weights["qkv_bias"]).reshape(-1, 3, size)
        q, k, v = (by_head[:, which] for which in range(3))
        keys, values = torch.cat([keys, k[:, None]], dim=1), torch.cat([values, v[:, None]], dim=1)
        scores = torch.einsum("hd,htd->ht", q, keys) / math.sqrt(size)
        heads = torch.einsum("ht,htd->hd", scores.softmax(-1), values).flatten()
        y = x + linear(heads, weights["out"]) + weights["out_bias"]
        normed = layer_norm(y, y.shape, weights["norm_2"], weights["norm_2_bias"])
        wide = gelu(linear(normed, weights["up"], weights["up_bias"]))
        found[f"the output for token {number}"] = y + linear(wide, weights["down"]) + weights["down_bias"]
    return found | {_KEYS: keys, _VALUES: values}


def calls(outcome: Outcome, rank: int) -> "list[Event]":
    """What a rank sent or shared while the tokens passed."""
    events = outcome.attempt.replies[rank].events or ()
    spans = [event for event in events if event.kind == "phase" and event.name == "tokens"]
    kinds = ("collective", "send", "recv")
    return [event for event in events if event.kind in kinds and any(s.start <= event.start <= s.end for s in spans)]


def _two_sums(outcome: Outcome) -> Finding | None:
    xs = outcome.case.arguments[0][4]
    tokens, vector = len(xs), xs[0].nbytes
    for rank in range(outcome.world_size):
        made = calls(outcome, rank)
        if others := {call.name for call in made} - {"all_reduce"}:
            words = f"{_RIGHT} rank {{rank}} called {{got}}, and two all-reduces for each token are enough"
            return own("other-call", words, rank=rank, got=min(others))
        if len(made) != 2 * tokens and (made or outcome.world_size > 1):
            words = f"{_RIGHT} rank {{rank}} made {{made}} for {{tokens}}, and two for each token are enough"
            text = count(len(made), "all-reduce")
            return own("all-reduces", words, rank=rank, made=text, tokens=count(tokens, "token"), got=len(made))
        if largest := max((call.bytes for call in made if call.bytes > vector), default=0):
            words = f"{_RIGHT} an all-reduce of rank {{rank}} has {{got:,}} bytes, and {{expected:,}} are enough"
            return own("too-many-bytes", words, rank=rank, got=largest, expected=vector)
    return None


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size_of_group: int,
        heads: int = 1,
        past: int = 5,
        tokens: int = 1,
        size: int = 4,
        dtype: str = "float64",
        groups: int = 1,
    ) -> Case:
        """`heads` of each rank."""
        arguments, expected = [], []
        for _ in range(groups):
            width = heads * size_of_group * size
            shapes = {"qkv": (3 * width, width), "qkv_bias": (3 * width,), "out": (width, width), "out_bias": (width,)}
            shapes |= {"up": (2 * width, width), "up_bias": (2 * width,), "down": (width, 2 * width)}
            shapes |= {name: (width,) for name in ("down_bias", "norm_1", "norm_1_bias", "norm_2", "norm_2_bias")}
            weights = {name: drawn(rng, *shape, dtype=dtype) / math.sqrt(width) for name, shape in shapes.items()}
            xs = drawn(rng, tokens, width, dtype=dtype)
            both = [drawn(rng, heads * size_of_group, past, size, dtype=dtype) for _ in range(2)]
            whole = whole_layer(weights, size, past, xs, (both[0], both[1]))
            for rank in range(size_of_group):
                mine = {
                    name: tensor.chunk(size_of_group, dim=_CUT[name])[rank].clone() if name in _CUT else tensor
                    for name, tensor in weights.items()
                }
                keys, values = (kept.chunk(size_of_group)[rank].clone() if past else None for kept in both)
                arguments.append((mine, size, keys, values, xs, size_of_group if groups > 1 else 0))
                expected.append(
                    {
                        name: tensor.chunk(size_of_group)[rank] if name in (_KEYS, _VALUES) else tensor
                        for name, tensor in whole.items()
                    }
                )
        key = "groups" if groups > 1 else "first-token" if not past else "several-tokens" if tokens > 1 else ""
        label = f"{ranks(len(arguments))}, {count(heads, 'head')} on each, {count(past, 'token')} in the cache"
        label += f", {count(tokens, 'new token')}, {dtype}" + (f", {groups} groups" if groups > 1 else "")
        more = {"backend": "gloo", "harness": steps_of, "judge": _two_sums, "key": key}
        return Case(label, arguments, expected, tolerance=_TOLERANCE[dtype], **more)

    two = min(2, world_size)
    yield case(1)
    yield case(1, heads=3, past=7)
    yield case(two)
    yield case(two, heads=2, size=3)
    yield case(world_size, past=int(rng.integers(2, 20)))
    yield case(two, past=0)
    yield case(two, tokens=3)
    yield case(min(3, world_size), heads=2, past=0, tokens=4)
    yield case(world_size, heads=2, dtype="float32")
    yield case(2, groups=2)
    yield case(2, heads=2, tokens=2, groups=2)
    yield case(world_size, past=24, size=8)


def _praise(outcome: Outcome) -> str:
    sent = calls(outcome, 0)
    return (
        f"the numbers of a whole layer on {ranks(outcome.world_size)}; {count(len(sent), 'all-reduce')} of "
        f"{max(call.bytes for call in sent)} bytes, and the cache stayed where it was"
    )


EXERCISE = Exercise(
    library="decode_step",
    number=2,
    minutes=25,
    difficulty=3,
    turn="attention with the cache, then the MLP; where are the two sums?",
    title="one token through one layer",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Go through a block in order: norm, queries, keys and values, attention, `out`, norm, `up`, gelu, `down`. "
        "After which two of them does each rank have only a term of a sum? And which keys does the new query see?",
        "Reshape what `qkv` gives to (heads, 1, 3 · size) and cut it into q, k and v along the last dimension. Append "
        "k and v to the cache, compute softmax(q kᵀ / √size) v with all keys, flatten, and apply `out`. All-reduce "
        "this term, then add x and `out_bias`. Do the same with `down(gelu(up(norm_2(x))))` and `down_bias`.",
    ),
    praise=_praise,
)
