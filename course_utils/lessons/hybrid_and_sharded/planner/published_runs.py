"""What published training runs have spent: parameters, tokens and hours of devices, as their authors give them."""

from dataclasses import dataclass

from course_utils.lessons.hybrid_and_sharded.utilization import HOUR, mfu


@dataclass(frozen=True)
class Spent:
    """What a published training, or a second of it, has spent.

    Attributes:
        parameters: N, as published.
        tokens: that went through the model.
        layers, context: of the transformer.
        heads_width: of all heads of a layer together.
        device_hours: of all devices together.
        peak: FLOP/s of one device, from its data sheet.
        source: where these numbers stand.
    """

    parameters: float
    tokens: float
    layers: int
    heads_width: int
    context: int
    device_hours: float
    peak: float
    source: str

    def utilizations(self) -> dict[str, float]:
        """The MFU, in two parts: of the parameters, 6 N a token, and of attention, 12 L s h.

        Source: Chowdhery et al. 2022, appendix B.
        """
        attention = 4 * self.layers * self.context * self.heads_width
        spent = self.tokens, self.device_hours * HOUR, 1, self.peak
        return {"weights": mfu(2 * self.parameters, *spent), "attention": mfu(attention, *spent)}


_LLAMA = "Touvron et al. 2023, LLaMA, tables 2 and 15"
_LLAMA_2 = "Touvron et al. 2023, Llama 2, tables 1 and 2"
_A100, _TPU_V4 = 312e12, 275e12

SPENT = {
    "LLaMA 7B": Spent(6.7e9, 1.0e12, 32, 4096, 2048, 82_432, _A100, _LLAMA),
    "LLaMA 13B": Spent(13.0e9, 1.0e12, 40, 5120, 2048, 135_168, _A100, _LLAMA),
    "LLaMA 33B": Spent(32.5e9, 1.4e12, 60, 6656, 2048, 530_432, _A100, _LLAMA),
    "LLaMA 65B": Spent(65.2e9, 1.4e12, 80, 8192, 2048, 1_022_362, _A100, _LLAMA),
    "Llama 2 70B": Spent(70e9, 2.0e12, 80, 8192, 4096, 1_720_320, _A100, _LLAMA_2),
    "PaLM 540B": Spent(
        540.35e9, 238.3e3, 118, 12288, 2048, 6144 / HOUR, _TPU_V4, "Chowdhery et al. 2022, §4.1 and appendix B"
    ),
}
"""The first five are whole training runs: their hours may hold waiting and work done twice. The last is a second."""
