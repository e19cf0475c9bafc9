"""Mixed precision: the greedy choice against trying everything, and sensitivities that mean something."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.cli import run_command
from seatrial.errors import UserError
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.mixed import Group, by_kl, by_size
from seatrial.quantize.planning import plan_mixed
from seatrial.quantize.recipe import Format, recipe_for
from seatrial.quantize.sensitivity import Probe, groups_of, measure_sensitivity, rounded

pytestmark = pytest.mark.usefixtures("own_cache")

GROUPS = st.lists(
    st.builds(
        lambda number, low, extra, kl: Group(f"g{number}", low, low + extra, kl),
        st.integers(0, 10**6),
        st.integers(1, 100),
        st.integers(1, 100),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=7,
    unique_by=lambda group: group.name,
)


@given(groups=GROUPS, share=st.floats(0, 1))
def test_a_size_is_never_exceeded_and_nothing_that_fits_is_left_out(groups, share):
    least, most = sum(g.low_bytes for g in groups), sum(g.high_bytes for g in groups)
    limit = int(least + share * (most - least))
    choice = by_size(groups, limit)
    assert choice.weight_bytes <= limit
    left = [g for g in groups if g.name not in choice.high]
    assert all(choice.weight_bytes + g.high_bytes - g.low_bytes > limit for g in left)
    assert choice.estimated_kl == pytest.approx(sum(g.kl for g in left))


@given(groups=GROUPS, share=st.floats(0, 1))
def test_a_loss_is_never_exceeded_and_one_group_fewer_would_exceed_it(groups, share):
    limit = share * sum(g.kl for g in groups)
    choice = by_kl(groups, limit)
    assert choice.estimated_kl <= limit + 1e-9
    order = sorted((g for g in groups if g.name in choice.high), key=lambda g: g.benefit)
    if order:
        assert choice.estimated_kl + order[0].kl > limit - 1e-9


@given(groups=GROUPS)
def test_with_equal_sizes_the_greedy_choice_is_the_best_there_is(groups):
    equal = [Group(g.name, 10, 20, g.kl) for g in groups]
    for count in range(len(equal) + 1):
        limit = 10 * len(equal) + 10 * count
        best = min(
            sum(g.kl for g in equal) - sum(g.kl for g in chosen) for chosen in combinations(equal, count)
        )
        assert by_size(equal, limit).estimated_kl == pytest.approx(best)


def test_targets_that_cannot_be_reached_say_what_can():
    groups = [Group("a", 5_000_000, 9_000_000, 0.1)]
    with pytest.raises(UserError, match=r"at least 6 MB"):
        by_size(groups, 4_000_000)
    with pytest.raises(UserError, match="cannot be reached"):
        by_kl(groups, 0.001, high_kl=0.004)


def test_sensitivity_is_what_replacing_one_group_does(tiny):
    low = Format(4, 32)
    found = measure_sensitivity(tiny, low, tokens=40)
    probe = Probe(tiny, threads=1)
    assert set(found.kl) == set(groups_of(probe.found))
    assert all(kl > 0 for kl in found.kl.values())
    finer = measure_sensitivity(tiny, Format(8, 32), tokens=40)
    assert all(finer.kl[group] < found.kl[group] / 20 for group in found.kl)
    assert measure_sensitivity(tiny, low, tokens=40).kl == found.kl  # from the cache


def test_a_matrix_is_rounded_as_it_will_be_stored_with_its_inputs_evened_out(tiny):
    low, rng = Format(4, 32), np.random.default_rng(0)
    probe = Probe(tiny, threads=1)
    target = next(target for target in probe.found.targets if target.group == "layers.0.mlp")
    values = probe.reader.read(target.weight)
    inputs, outputs = (
        np.exp(rng.normal(size=size)).astype(np.float32) for size in (target.width, target.rows)
    )
    factors = (inputs[:, None], outputs[None]) if not target.transposed else (inputs[None], outputs[:, None])
    stored = rounded(values * factors[0] * factors[1], target, low)
    x = rng.normal(size=(3, target.width)).astype(np.float32)

    def times(x, matrix):
        return x @ (matrix.T if target.transposed else matrix)

    found = times(x, rounded(values, target, low, factors))
    assert np.allclose(found, times(x / inputs, stored) / outputs, rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, times(x, rounded(values, target, low)), rtol=1e-2, atol=1e-3)


def test_sensitivity_of_evened_out_weights_is_another_one(tiny):
    low = Format(4, 32)
    plain = measure_sensitivity(tiny, low, balanced=False, tokens=40)
    evened = measure_sensitivity(tiny, low, tokens=40)
    assert plain.kl["head"] == evened.kl["head"], "the head is left alone"
    assert all(plain.kl[group] != evened.kl[group] for group in plain.kl if group != "head")


def test_the_probe_reads_like_the_session(tiny):
    from seatrial.export.session import Session

    ids = list(range(50))
    with Session(tiny, capacity=64, threads=1) as session:
        assert np.abs(Probe(tiny, threads=1).logits(ids) - session.score(ids)).max() < 1e-4


def test_mixed_bundles_lie_between_and_keep_to_the_target(tiny, tmp_path):
    small, large = (quantize_bundle(tiny, tmp_path / w, weights=w, kv="fp32") for w in ("int4", "int8"))
    target = (small.sizes["quantized"] + large.sizes["quantized"]) / 2e6 + 0.05
    mixed = quantize_bundle(tiny, tmp_path / "mixed", weights="mixed", kv="fp32", target_mb=target)
    assert mixed.sizes["quantized"] <= target * 1e6
    kl = [result.agreement["en"].kl for result in (large, mixed, small)]
    assert kl == sorted(kl)
    assert len(mixed.formats) == 2


def test_a_target_in_kl_gives_the_fewest_bytes_that_should_do(tiny):
    recipe, choice = plan_mixed(tiny, target_kl=0.01)
    assert choice.estimated_kl <= 0.01
    assert {form.bits for form in recipe.groups.values()} == {8}
    assert recipe.body.bits == 4


@pytest.mark.parametrize("options", [[], ["--target-mb", "1", "--target-kl", "0.1"], ["--target-mb", "0.01"]])
def test_targets_are_checked(tiny, tmp_path, options):
    arguments = [
        "quantize",
        str(tiny.folder),
        str(tmp_path / "out"),
        "--weights",
        "mixed",
        *options,
        "--quiet",
    ]
    assert run_command(arguments) == 2
    with pytest.raises(UserError, match="mixed"):
        quantize_bundle(tiny, tmp_path / "out", weights="int4", target_mb=100)


def test_gptq_runs_on_a_whole_bundle(tiny, tmp_path):
    recipe = recipe_for("int4", algorithm="gptq")
    tuned = quantize_bundle(tiny, tmp_path / "gptq", weights="int4", kv="fp32", recipe=recipe)
    assert not tuned.failed
    assert tuned.formats == {"int4/32 sym gptq": 10, "int8/32 sym rtn": 1}
