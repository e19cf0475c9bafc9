"""Reads an `Architecture` out of a Hugging Face config.json, old field names and nested text models included.

Rules: a stated field always wins over a formula (head_dim is not hidden/heads when it is given); a required
field that is missing is an error with its name; KV heads are what the config says, and every query head's own
where the format has no such field. What only bounds the truth goes into `notes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from seatrial.errors import UserError
from seatrial.export.architecture import Architecture, Layer
from seatrial.export.families import FAMILIES, LLAMA, Family

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "hidden_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "num_query_groups")
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels", "d_head")
FFN = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "inner_hidden_size")
POSITIONS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
    "n_ctx",
)
VOCABULARY = ("vocab_size", "padded_vocab_size")
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
ACTIVE = ("num_experts_per_tok", "moe_topk", "experts_per_token", "moe_top_k")
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
# These models have a feed-forward of four times the hidden size and no field for it.
FOUR_TIMES_HIDDEN = ("gpt2", "gptj", "gpt_bigcode", "bloom", "falcon", "mpt")


@attrs.define
class Fields:
    """Look-ups in one config level; collects the notes that a look-up deserves."""

    config: Mapping[str, Any]
    where: str
    notes: list[str] = attrs.field(factory=list)

    def find(self, names: tuple[str, ...]) -> Any:
        """The first stated value under any of the names, else None."""
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def count(self, names: tuple[str, ...]) -> int:
        """A required whole number above zero.

        Raises:
            UserError: missing under all names, or not such a number.
        """
        value = self.optional_count(names)
        if value is None:
            others = f" (or {', '.join(names[1:])})" if names[1:] else ""
            raise UserError(
                f"{self.where}: the field {names[0]}{others} is missing; no estimate is made without it"
            )
        return value

    def optional_count(self, names: tuple[str, ...]) -> int | None:
        """A whole number above zero, or None where the field is absent or null."""
        value = self.find(names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise UserError(f"{self.where}: {names[0]} is {value!r}; a whole number above zero is needed")
        return value


def architecture_of_config(config: Mapping[str, Any], *, name: str) -> Architecture:
    """The architecture of the (text) model that `config` describes."""
    text, where = _text_level(config)
    fields = Fields(text, where)
    model_type = str(text.get("model_type", config.get("model_type", "")))
    if config.get("is_encoder_decoder"):
        raise UserError(
            f"{where}: an encoder-decoder model ({model_type}); only decoder-only models are planned"
        )
    family = _family(model_type, fields)
    layers = _layers(fields, model_type, family)
    hidden = fields.count(HIDDEN)
    vocabulary = Fields({**config, **text}, where).count(VOCABULARY)
    return Architecture(
        name=name,
        model_type=model_type or "unknown",
        hidden=hidden,
        vocabulary=vocabulary,
        layers=layers,
        tied=_tied(text, config, family),
        max_positions=fields.optional_count(POSITIONS),
        embedding_width=fields.optional_count(("word_embed_proj_dim",)) or hidden,
        other_params=_other_params(fields, model_type, family, hidden, vocabulary),
        extra_embedding_params=_per_layer_embedding(fields, len(layers)),
        ffn_width=fields.optional_count(FFN) or 4 * hidden,
        experts=fields.optional_count(EXPERTS) or 0,
        active_experts=fields.optional_count(ACTIVE) or 0,
        notes=tuple(dict.fromkeys(fields.notes)),
    )


def _text_level(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The level that describes the language model: multimodal configs keep it one level down."""
    for key in NESTED:
        if isinstance(config.get(key), Mapping):
            inner, where = _text_level(config[key])
            return inner, f"{key}" if where == "config.json" else f"{key}.{where}"
    return config, "config.json"


def _family(model_type: str, fields: Fields) -> Family:
    base = model_type.removesuffix("_text")
    family = FAMILIES.get(model_type) or FAMILIES.get(base)
    if family is None:
        shown = model_type or "missing"
        fields.notes.append(
            f"model_type {shown} is not known here: read as gated feed-forward without biases"
        )
        return LLAMA
    config = fields.config
    if "attention_bias" in config:
        family = attrs.evolve(
            family, qkv_bias=bool(config["attention_bias"]), output_bias=bool(config["attention_bias"])
        )
    if model_type in ("glm", "glm4", "qwen2_moe"):
        family = attrs.evolve(family, output_bias=False)
    if "mlp_bias" in config:
        family = attrs.evolve(family, ffn_bias=bool(config["mlp_bias"]))
    if "use_qkv_bias" in config:
        family = attrs.evolve(family, qkv_bias=bool(config["use_qkv_bias"]))
    return family


def _tied(text: Mapping[str, Any], config: Mapping[str, Any], family: Family) -> bool:
    return bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", family.tied)))


def _layers(fields: Fields, model_type: str, family: Family) -> tuple[Layer, ...]:
    count = fields.count(LAYERS)
    windows = layer_windows(fields, family, count)
    shared = fields.optional_count(("num_kv_shared_layers",)) or 0
    shape = _attention_shape(fields, model_type)
    attention, attention_vectors, latent = _attention_params(fields, model_type, family, shape)
    query_heads, kv_heads, head_dim, value_dim = shape
    layers = []
    for index, window in enumerate(windows):
        ffn, active, ffn_vectors = _ffn_params(fields, model_type, family, index)
        layers.append(
            Layer(
                kind="latent" if latent else "window" if window else "full",
                query_heads=query_heads,
                kv_heads=kv_heads,
                head_dim=head_dim,
                value_dim=value_dim,
                attention_params=attention,
                ffn_params=ffn,
                ffn_active_params=active,
                vector_params=attention_vectors + ffn_vectors + _norm_params(fields, family),
                window=window,
                kv_shared=index >= count - shared,
                latent_elements=latent,
            )
        )
    return tuple(layers)


def _attention_shape(fields: Fields, model_type: str) -> tuple[int, int, int, int]:
    """Query heads, KV heads, K width and V width of one head."""
    heads = fields.count(HEADS)
    if fields.config.get("kv_lora_rank") is not None:
        nope, rope = fields.count(("qk_nope_head_dim",)), fields.count(("qk_rope_head_dim",))
        return heads, heads, nope + rope, fields.count(("v_head_dim",))
    head_dim = fields.optional_count(HEAD_DIM)
    if head_dim is None:
        hidden = fields.count(HIDDEN)
        if hidden % heads:
            raise UserError(
                f"{fields.where}: head_dim is missing and {hidden} is not a multiple of {heads} heads"
            )
        head_dim = hidden // heads
    kv_heads = _kv_heads(fields, model_type, heads)
    if heads % kv_heads:
        raise UserError(f"{fields.where}: {heads} query heads cannot be shared among {kv_heads} KV heads")
    return heads, kv_heads, head_dim, head_dim


def _kv_heads(fields: Fields, model_type: str, heads: int) -> int:
    config = fields.config
    inner = config.get("attn_config")
    if isinstance(inner, Mapping) and inner.get("kv_n_heads"):
        return int(inner["kv_n_heads"])
    if config.get("multi_query_attention") and config.get("multi_query_group_num"):
        return fields.count(("multi_query_group_num",))
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    stated = fields.optional_count(KV_HEADS)
    if stated is not None and not (model_type == "falcon" and not config.get("new_decoder_architecture")):
        return stated
    if model_type not in ("gpt2", "opt", "gpt_neox", "gptj", "bloom", "phi", "mpt", "falcon"):
        fields.notes.append(
            "no num_key_value_heads in the config: every query head has its own keys and values"
        )
    return heads


def layer_windows(fields: Fields, family: Family, count: int) -> list[int | None]:
    """The window of each layer in tokens, None where it sees the whole context."""
    window = fields.optional_count(("sliding_window", "window_size", "attention_window"))
    kinds = fields.config.get("layer_types")
    if isinstance(kinds, list):
        if len(kinds) != count:
            raise UserError(f"{fields.where}: layer_types has {len(kinds)} entries for {count} layers")
        return [_window_of_kind(fields, str(kind), window) for kind in kinds]
    if window is None or fields.config.get("use_sliding_window") is False:
        return [None] * count
    if family.windows == "all":
        return [window] * count
    if family.windows == "upper":
        first = fields.count(("max_window_layers",))
        return [window if index >= first else None for index in range(count)]
    if family.windows in ("alternate", "pattern"):
        names = ("sliding_window_pattern", "_sliding_window_pattern")
        every = 2 if family.windows == "alternate" else fields.optional_count(names) or 6
        return [window if (index + 1) % every else None for index in range(count)]
    fields.notes.append(
        f"sliding_window {window} without layer_types: all layers priced in full, an upper bound"
    )
    return [None] * count


def _window_of_kind(fields: Fields, kind: str, window: int | None) -> int | None:
    if kind == "full_attention":
        return None
    if kind == "sliding_attention":
        if window is None:
            raise UserError(
                f"{fields.where}: the field sliding_window is missing for a sliding_attention layer"
            )
        return window
    if kind == "chunked_attention":
        return fields.count(("attention_chunk_size",))
    fields.notes.append(
        f"layer kind {kind} is not modelled: priced as full attention, an upper bound for its cache"
    )
    return None


def _attention_params(
    fields: Fields, model_type: str, family: Family, shape: tuple[int, int, int, int]
) -> tuple[int, int, int | None]:
    """Matrix scalars, vector scalars, and the latent width (None where K and V are kept whole)."""
    heads, kv_heads, key, value = shape
    hidden = fields.count(HIDDEN)
    rank = fields.optional_count(("kv_lora_rank",))
    if rank is not None:
        return _latent_params(fields, hidden, heads, key, value, rank)
    query, keys, values = heads * key, kv_heads * key, kv_heads * value
    matrices = hidden * (query + keys + values) + heads * value * hidden
    vectors = (query + keys + values) * family.qkv_bias + hidden * family.output_bias
    if family.qk_norm == "head":
        vectors += 2 * key
    elif family.qk_norm == "full":
        vectors += query + keys
    if model_type == "gpt_oss":
        vectors += heads
    return matrices, vectors, None


def _latent_params(
    fields: Fields, hidden: int, heads: int, key: int, value: int, rank: int
) -> tuple[int, int, int | None]:
    """Multi-head latent attention: K and V are expanded from `rank` scalars and a shared rotary part."""
    rope, nope = fields.count(("qk_rope_head_dim",)), fields.count(("qk_nope_head_dim",))
    query_rank = fields.optional_count(("q_lora_rank",))
    query = hidden * heads * key if query_rank is None else query_rank * (hidden + heads * key)
    matrices = query + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden
    fields.notes.append("latent attention: a runtime that expands keys and values stores all heads of them")
    return matrices, rank + (query_rank or 0), rank + rope


def _ffn_params(fields: Fields, model_type: str, family: Family, index: int) -> tuple[int, int, int]:
    """Matrix scalars in all, those one token uses, and vector scalars."""
    hidden = fields.count(HIDDEN)
    experts = fields.optional_count(EXPERTS)
    if experts and _is_sparse(fields, model_type, index):
        return _expert_params(fields, model_type, hidden, experts)
    width = fields.config.get("intermediate_size_mlp") if model_type == "llama4_text" else None
    width = width or fields.optional_count(FFN)
    if width is None and model_type in FOUR_TIMES_HIDDEN:
        width = 4 * hidden
    if width is None:
        width = fields.count(FFN)
    matrices = (3 if family.gated else 2) * hidden * width
    vectors = family.ffn_bias * ((2 if family.gated else 1) * width + hidden)
    return matrices, matrices, vectors


def _is_sparse(fields: Fields, model_type: str, index: int) -> bool:
    config = fields.config
    if index in (config.get("mlp_only_layers") or ()):
        return False
    if index < (config.get("first_k_dense_replace") or 0):
        return False
    step = (
        config.get("decoder_sparse_step")
        or config.get("interleave_moe_layer_step")
        or config.get("moe_layer_freq")
    )
    if not isinstance(step, int) or step <= 1:
        return True
    return index % step == 0 if model_type.startswith("deepseek") else (index + 1) % step == 0


def _expert_params(fields: Fields, model_type: str, hidden: int, experts: int) -> tuple[int, int, int]:
    active = fields.count(ACTIVE)
    if active > experts:
        raise UserError(f"{fields.where}: {active} experts per token out of {experts}")
    width = fields.optional_count(("moe_intermediate_size", "expert_intermediate_size")) or fields.count(FFN)
    one = 3 * hidden * width
    shared_width = fields.optional_count(("shared_expert_intermediate_size",)) or width * (
        fields.optional_count(("n_shared_experts", "num_shared_experts")) or 0
    )
    if model_type == "llama4_text":
        shared_width = width
    shared = 3 * hidden * shared_width
    gate = hidden * experts + (hidden if "shared_expert_intermediate_size" in fields.config else 0)
    vectors = experts if model_type == "gpt_oss" else 0
    if model_type == "gpt_oss":
        vectors += experts * (2 * width + hidden)
    return experts * one + shared + gate, active * one + shared + gate, vectors


def _norm_params(fields: Fields, family: Family) -> int:
    norms = family.norms
    if fields.config.get("new_decoder_architecture") and fields.config.get("num_ln_in_parallel_attn", 2) == 2:
        norms = 2
    return norms * fields.count(HIDDEN) * (2 if family.norm_bias else 1)


def _other_params(fields: Fields, model_type: str, family: Family, hidden: int, vocabulary: int) -> int:
    final = hidden * (2 if family.norm_bias else 1) * family.final_norm
    positions = 0
    if family.learned_positions:
        # OPT keeps two rows before the first position.
        positions = (fields.count(POSITIONS) + (2 if model_type == "opt" else 0)) * hidden
    embedding_norm = 2 * hidden if model_type == "bloom" else 0
    return final + positions + embedding_norm + vocabulary * family.head_bias


def _per_layer_embedding(fields: Fields, layers: int) -> int:
    """Tables of per-layer inputs (gemma3n): stored, one row read per token."""
    width = fields.optional_count(("hidden_size_per_layer_input",))
    rows = fields.optional_count(("vocab_size_per_layer_input",))
    if width is None or rows is None:
        return 0
    fields.notes.append("per-layer inputs: their tables are counted, their small projections are not")
    return rows * width * layers
