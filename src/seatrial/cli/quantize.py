"""`seatrial quantize`: a float bundle becomes a quantized one, with proof and a measure of the damage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE

if TYPE_CHECKING:
    from seatrial.quantize.result import QuantizeResult


def quantize(
    bundle: str = typer.Argument(..., help="Folder of a float bundle (seatrial export, optimum, genai)."),
    out: str = typer.Argument(..., help="Folder to write; it appears only when every check passed."),
    weights: str = typer.Option("int4", help="int4, int8, mixed with a target, or fp32 to keep them."),
    kv: str = typer.Option("int8", help="KV cache: int8, int4 or fp32."),
    block: int = typer.Option(32, help="Values that share a scale: 32, 64 or 128."),
    asymmetric: bool = typer.Option(False, "--asymmetric", help="Store a zero point with every scale."),
    algorithm: str = typer.Option("rtn", help="rtn, k_quant, hqq or gptq."),
    head_bits: int = typer.Option(8, help="Bits of head and embedding: 8 or 4."),
    balance: bool = typer.Option(True, help="Even out the inputs of matmuls before rounding."),
    op: list[str] | None = typer.Option(None, "--op", help="Kind of matmul to quantize; may be repeated."),
    kv_per_tensor: bool = typer.Option(False, "--kv-per-tensor", help="One cache scale per tensor."),
    target_mb: float | None = typer.Option(None, help="Size that mixed weights may take, in MB."),
    target_kl: float | None = typer.Option(None, help="KL in nats that mixed weights may cost."),
    curve: bool = typer.Option(
        False, "--curve", help="Make and measure nine settings, and write none of them."
    ),
    floor: float = typer.Option(0.9, help="Share of the weight bytes that must become small."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress."),
) -> int:
    """Quantize a bundle's weights and its KV cache.

    Example: seatrial quantize bundles/fp32 bundles/int4 --weights int4 --kv int8
    """
    from seatrial.cli.output import print_json
    from seatrial.cli.progress import stage_progress
    from seatrial.export.bundle import open_bundle
    from seatrial.quantize.bundle import quantize_bundle
    from seatrial.quantize.recipe import KEPT, recipe_for
    from seatrial.quantize.targets import MATMULS

    recipe = recipe_for(
        "int4" if weights in ("mixed", KEPT) else weights,
        block=block,
        symmetric=not asymmetric,
        algorithm=algorithm,
        head_bits=head_bits,
        balanced=balance,
    )
    if curve:
        return _curve(Path(bundle), Path(out), kv, json, quiet)
    with stage_progress(quiet) as progress:
        result = quantize_bundle(
            open_bundle(Path(bundle)),
            Path(out),
            weights=weights,
            kv=kv,
            recipe=recipe,
            operators=op or MATMULS,
            granularity="tensor" if kv_per_tensor else "channel",
            target_mb=target_mb,
            target_kl=target_kl,
            floor=floor,
            progress=progress,
        )
    if json:
        print_json(result.to_json())
    else:
        _print(result)
    return EXIT_CHECK_FAILED if result.failed else EXIT_DONE


def _curve(bundle: Path, out: Path, kv: str, json: bool, quiet: bool) -> int:
    """Measure the settings beside `out`, print them."""
    from seatrial.cli.output import print_json
    from seatrial.cli.progress import stage_progress
    from seatrial.export.bundle import open_bundle
    from seatrial.quantize.curve import curve

    out.parent.mkdir(parents=True, exist_ok=True)
    with stage_progress(quiet) as progress:
        points = curve(open_bundle(bundle), kv=kv, folder=out.parent, progress=progress)
    if json:
        print_json({"kv": kv, "curve": [point.to_json() for point in points]})
        return EXIT_DONE
    print(f"{'setting':22}{'MB':>8}{'KL en':>9}{'KL zh':>9}{'top en':>8}{'top zh':>8}{'tok/s':>8}")
    for point in points:
        en, zh = point.agreement["en"], point.agreement["zh"]
        print(
            f"{point.name:22}{point.size_bytes / 1e6:8.1f}{en.kl:9.4f}{zh.kl:9.4f}"
            f"{en.same_top1:8.3f}{zh.same_top1:8.3f}{point.tokens_per_s:8.1f}"
        )
    return EXIT_DONE


def _print(result: QuantizeResult) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    mega = 1e6
    before, after = result.sizes["reference"] / mega, result.sizes["quantized"] / mega
    formats = ", ".join(f"{count} {name}" for name, count in result.formats.items()) or "kept as they are"
    console.print(
        f"quantized {result.matmuls} of {result.of} matmuls, "
        f"{result.weight_bytes_share:.1%} of the weight bytes ({formats})"
    )
    for name, reason in result.refused.items():
        console.print(f"  left as it was: {name}: {reason}")
    console.print(f"size {before:.1f} MB -> {after:.1f} MB; embedding and head stored once: {result.tied}")
    if result.kv_cache:
        ends = result.kv_cache["share_at_the_ends"]
        console.print(
            f"KV cache {result.kv}, per {result.kv_cache['granularity']}; {ends:.4%} at the ends of the range"
        )
    for language, found in result.agreement.items():
        console.print(
            f"{language}: KL {found.kl:.4f}, same top token {found.same_top1:.3f} over {found.tokens} tokens"
        )
    console.print(f"reference: {result.provenance}")
    for check in result.checks:
        if check.verdict != "ok":
            console.print(f"FAILED {check.name}: {check.figure:.4g}, limit {check.limit:.4g} {check.detail}")
    for warning in result.warnings:
        console.print(f"warning: {warning}")
    console.print(f"written to {result.out}" if not result.failed else f"nothing was written to {result.out}")
