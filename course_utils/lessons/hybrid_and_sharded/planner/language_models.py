"""Language models that others have trained, as their papers describe them, and what follows from that."""

from dataclasses import dataclass, replace

from course_utils.errors import CourseError


@dataclass(frozen=True)
class LanguageModel:
    """A transformer that predicts the next token.

    Attributes:
        layers, width, heads, vocabulary, context: as in `lessons.model_parallel.transformer.character_model`.
        published: how many parameters its authors say it has.
        source: where that stands.
        hidden: width of the perceptron's inner layer; None for four times `width`.
        key_heads: heads that have keys and values of their own; None for all.
        experts: perceptrons of each layer among which a gate chooses; 0 for a dense model, which has one.
        chosen: experts that each token goes through, k.
        gated: as Llama: a gate in the perceptron (three matrices), no biases, places by rotation, norms without shifts,
            and a last layer of its own. Otherwise as GPT: the last layer is the embedding.
        dropout: whether it is trained with dropout, so that a block saves masks.
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int
    published: float
    source: str
    hidden: int | None = None
    key_heads: int | None = None
    gated: bool = False
    experts: int = 0
    chosen: int = 1
    dropout: bool = False

    @property
    def inner(self) -> int:
        """Width of the perceptron's inner layer."""
        return self.hidden or 4 * self.width

    @property
    def key_width(self) -> float:
        """Of all keys of a token together, and of all values."""
        return self.width * (self.key_heads or self.heads) / self.heads

    @property
    def layer_parameters(self) -> float:
        """Of one block, with all its experts: as GPT 12 h² + 13 h."""
        return self.shared_parameters + self.expert_parameters

    @property
    def shared_parameters(self) -> float:
        """Of one block, without its experts: what every token goes through. Of a dense model everything."""
        attention = 2 * self.width**2 + 2 * self.width * self.key_width
        small = 2 * self.width if self.gated else 4 * self.width + 5 * self.width + self.inner
        return attention + small + (self.width * self.experts if self.experts else self._perceptron)

    @property
    def expert_parameters(self) -> float:
        """Of all experts of a block together."""
        return self.experts * self._perceptron

    @property
    def _perceptron(self) -> float:
        return (3 if self.gated else 2) * self.width * self.inner

    @property
    def token_parameters(self) -> float:
        """Of the embedding of tokens; as many has a last layer of its own."""
        return self.vocabulary * self.width

    @property
    def parameters(self) -> float:
        """All of them, N."""
        ends = 2 * self.token_parameters if self.gated else self.token_parameters + self.context * self.width
        return self.layers * self.layer_parameters + ends + self.width * (1 if self.gated else 2)

    def flops(self, tokens: float, length: int) -> float:
        """Of a forward and a backward pass: 6 for each parameter and token, and for attention 12 L s h a token.

        Of the experts a token goes through `chosen`; the others cost it nothing.

        Looking up an embedding is no arithmetic, so those parameters are left out, unless the last layer uses them.

        Args:
            tokens: in all texts together.
            length: s, of one text.

        Source: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", §2.1 (6 N); Narayanan et al. 2021,
        §5.1, equation 3 (attention: s / 6h of the rest).
        """
        active = self.shared_parameters + self.chosen * self._perceptron * (self.experts > 0)
        multiplied = self.layers * active + self.token_parameters
        return tokens * (6 * multiplied + self.attention_flops(length))

    def attention_flops(self, length: int) -> float:
        """Of queries by keys and weights by values, for a token, forward and backward.

        The whole square is counted, as in these papers, although a causal program needs to compute only half of it.

        Source: Narayanan et al. 2021, §5.1, equation 3; Chowdhery et al. 2022, "PaLM", appendix B.
        """
        return 12 * self.layers * length * self.width


_GPT3 = "Brown et al. 2020, table 2.1"
_LLAMA3 = "Grattafiori et al. 2024, table 3"
_MEGATRON = "Narayanan et al. 2021, table 1"
_RECOMPUTATION = "Korthikanti et al. 2022, table 3"
_GROUPED = {"key_heads": 8, "gated": True}

MODELS = {
    "GPT-2 1.5B": LanguageModel(48, 1600, 25, 50257, 1024, 1.542e9, "Radford et al. 2019, table 2", dropout=True),
    "Llama 7B": LanguageModel(
        32, 4096, 32, 32000, 2048, 6.7e9, "Touvron et al. 2023, table 2", hidden=11008, gated=True
    ),
    "Megatron 22B": LanguageModel(48, 6144, 64, 51200, 2048, 22e9, _RECOMPUTATION, dropout=True),
    "Llama 3 70B": LanguageModel(80, 8192, 64, 128256, 8192, 70e9, _LLAMA3, hidden=28672, **_GROUPED),
    "Megatron 145B": LanguageModel(80, 12288, 96, 51200, 2048, 145.6e9, _MEGATRON, dropout=True),
    "GPT-3 175B": LanguageModel(96, 12288, 96, 50257, 2048, 175e9, _GPT3, dropout=True),
    "Llama 3 405B": LanguageModel(126, 16384, 128, 128256, 8192, 405e9, _LLAMA3, hidden=53248, **_GROUPED),
    "Megatron 530B": LanguageModel(105, 20480, 128, 51200, 2048, 529.6e9, _MEGATRON, dropout=True),
    "Megatron 1T": LanguageModel(128, 25600, 160, 51200, 2048, 1008e9, _MEGATRON, dropout=True),
}
"""Dense ones, by name."""

WITH_EXPERTS = {
    "Mixtral 8x7B": LanguageModel(
        32,
        4096,
        32,
        32000,
        32768,
        47e9,
        "Jiang et al. 2024, table 1",
        14336,
        experts=8,
        chosen=2,
        **_GROUPED,
    ),
}
"""By name."""


_NEMO, _MPT = "NeMo, performance_summary.md", "llm-foundry, scripts/train/benchmarking/README.md"

BENCHMARKED = {
    "Llama 3 8B": LanguageModel(32, 4096, 32, 128256, 8192, 8.0e9, _LLAMA3, hidden=14336, **_GROUPED),
    "Llama 2 7B": LanguageModel(32, 4096, 32, 32000, 4096, 6.7e9, _NEMO, hidden=11008, gated=True),
    "Llama 2 13B": LanguageModel(40, 5120, 40, 32000, 4096, 13.0e9, _NEMO, hidden=13824, gated=True),
    "Llama 2 70B": LanguageModel(80, 8192, 64, 32000, 4096, 69e9, _NEMO, hidden=28672, **_GROUPED),
    "GPT-3 5B": LanguageModel(24, 4096, 32, 51200, 2048, 5.0e9, _NEMO, dropout=True),
    "GPT-3 20B": LanguageModel(44, 6144, 48, 51200, 2048, 20.3e9, _NEMO, dropout=True),
    "Nemotron 8B": LanguageModel(32, 4096, 32, 256000, 4096, 7.5e9, _NEMO),
    "Nemotron 22B": LanguageModel(40, 6144, 48, 256000, 4096, 19.7e9, _NEMO),
    "Nemotron 340B": LanguageModel(96, 18432, 96, 256000, 4096, 336e9, _NEMO, hidden=73728, key_heads=8),
    "MPT 7B": LanguageModel(32, 4096, 32, 50368, 2048, 6658859008, _MPT),
    "MPT 13B": LanguageModel(40, 5120, 40, 50368, 2048, 12853954560, _MPT),
    "MPT 30B": LanguageModel(48, 7168, 64, 50368, 2048, 29975214080, _MPT),
    "MPT 70B": LanguageModel(80, 8192, 64, 50368, 2048, 64862437376, _MPT),
}
"""Only for `published_h100`. Where a source says nothing of the shape, it gives tokens and FLOP in a second, or the
number of parameters: these shapes agree with that, which a test holds them to. GPT-3 is assumed to have dropout, as in
Megatron-LM."""

_OLMO = "Ai2, model card allenai/Olmo-3-1125-32B; OLMo-core, nn/transformer/config.py, olmo3_{}"

OPEN = {
    "Olmo 3 7B": LanguageModel(32, 4096, 32, 100278, 8192, 7.3e9, _OLMO.format("7B"), hidden=11008, gated=True),
    "Olmo 3 32B": LanguageModel(64, 5120, 40, 100278, 8192, 32.2e9, _OLMO.format("32B"), hidden=27648, **_GROUPED),
}
"""By name: models whose data, programs and training hours are public, too. Three of four layers let a token see no
more than the 4,096 before it; here every layer is counted with the whole text."""

_SHAPES = "measured for this course: `published_h100.ONE_GPU`"

MEASURED = {
    "Llama 1.5B": LanguageModel(16, 2048, 32, 128256, 2048, 1.498e9, _SHAPES, hidden=8192, **_GROUPED),
    "Llama 3 8B, 4 layers": LanguageModel(4, 4096, 32, 32000, 4096, 1.135e9, _SHAPES, hidden=14336, **_GROUPED),
    "GPT-2 small": LanguageModel(12, 768, 12, 50257, 1024, 124e6, _SHAPES),
    "GPT-2 1.5B without dropout": replace(MODELS["GPT-2 1.5B"], dropout=False, source=_SHAPES),
}
"""Shapes whose steps were measured on one GPU. The second has four layers of Llama 3 8B, and a vocabulary of 32,000."""


def model_named(model: str | LanguageModel) -> LanguageModel:
    """The model of this name; a model itself stays.

    Raises:
        CourseError: there is no such model.
    """
    if isinstance(model, LanguageModel):
        return model
    known = MODELS | WITH_EXPERTS | BENCHMARKED | OPEN | MEASURED
    if model not in known:
        raise CourseError(f"There is no model {model!r}. Take one of {', '.join(known)}, or make a LanguageModel.")
    return known[model]
