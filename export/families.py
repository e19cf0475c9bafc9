"""What a model_type implies that its config.json does not say: gated or plain FFN, biases, norms, tying.

The table follows the modelling code of transformers; the tests compare its parameter counts with models built
from such configs. An unknown family is read as the commonest one (gated, no biases) and marked as such by the
caller.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Family:
    """Structure of a decoder layer beyond its sizes.

    `norms` counts norm vectors of hidden size per layer; `qk_norm`: none | head | full; `windows` says which
    layers are windowed when `layer_types` is absent: none | all | alternate | pattern | upper.
    """

    gated: bool = True
    qkv_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False
    norms: int = 2
    norm_bias: bool = False
    qk_norm: str = "none"
    final_norm: bool = True
    learned_positions: bool = False
    head_bias: bool = False
    tied: bool = False
    windows: str = "none"


LLAMA = Family()
_GEMMA2 = Family(norms=4, tied=True, windows="alternate")
_GEMMA3 = Family(norms=4, tied=True, qk_norm="head", windows="pattern")
_GPT = Family(
    gated=False,
    qkv_bias=True,
    output_bias=True,
    ffn_bias=True,
    norm_bias=True,
    learned_positions=True,
    tied=True,
)

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": attrs.evolve(LLAMA, windows="all"),
    "ministral": attrs.evolve(LLAMA, windows="all"),
    "mixtral": attrs.evolve(LLAMA, windows="all"),
    "qwen2": attrs.evolve(LLAMA, qkv_bias=True, windows="upper"),
    "qwen2_moe": attrs.evolve(LLAMA, qkv_bias=True, windows="upper"),
    "qwen3": attrs.evolve(LLAMA, qk_norm="head", windows="upper"),
    "qwen3_moe": attrs.evolve(LLAMA, qk_norm="head", windows="upper"),
    "gemma": attrs.evolve(LLAMA, tied=True),
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA3,
    "gemma3": _GEMMA3,
    "phi": Family(
        gated=False, qkv_bias=True, output_bias=True, ffn_bias=True, norms=1, norm_bias=True, head_bias=True
    ),
    "phi3": attrs.evolve(LLAMA, windows="all"),
    "phimoe": attrs.evolve(LLAMA, norm_bias=True, windows="all"),
    "gpt2": _GPT,
    "opt": _GPT,
    "gpt_neox": Family(gated=False, qkv_bias=True, output_bias=True, ffn_bias=True, norm_bias=True),
    "gptj": Family(gated=False, ffn_bias=True, norms=1, norm_bias=True, head_bias=True),
    "gpt_bigcode": _GPT,
    "starcoder2": Family(
        gated=False,
        qkv_bias=True,
        output_bias=True,
        ffn_bias=True,
        norm_bias=True,
        tied=True,
        windows="all",
    ),
    "falcon": Family(gated=False, norms=1, norm_bias=True, tied=True),
    "mpt": Family(gated=False, tied=True),
    "bloom": attrs.evolve(_GPT, learned_positions=False),
    "stablelm": attrs.evolve(LLAMA, norm_bias=True),
    "granite": LLAMA,
    "granitemoe": LLAMA,
    "olmo": attrs.evolve(LLAMA, norms=0, final_norm=False),
    "olmo2": attrs.evolve(LLAMA, qk_norm="full"),
    "olmo3": attrs.evolve(LLAMA, qk_norm="full"),
    "olmoe": attrs.evolve(LLAMA, qk_norm="full"),
    "smollm3": attrs.evolve(LLAMA, tied=True),
    "cohere": attrs.evolve(LLAMA, norms=1, tied=True),
    "cohere2": attrs.evolve(LLAMA, norms=1, tied=True, windows="pattern"),
    "glm": attrs.evolve(LLAMA, qkv_bias=True),
    "glm4": attrs.evolve(LLAMA, qkv_bias=True, norms=4),
    "chatglm": attrs.evolve(LLAMA, qkv_bias=True),
    "internlm2": LLAMA,
    "baichuan": LLAMA,
    "exaone4": attrs.evolve(LLAMA, qk_norm="head", windows="pattern"),
    "deepseek_v2": LLAMA,
    "deepseek_v3": LLAMA,
    "minicpm": LLAMA,
    "minicpm3": LLAMA,
    "gpt_oss": attrs.evolve(LLAMA, qkv_bias=True, output_bias=True),
}
