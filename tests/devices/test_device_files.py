"""Device and runtime files: every figure with its source, variants, errors that name what is missing."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.devices.device import device_names, load_device, read_toml, with_measured_bandwidth
from seatrial.devices.runtime import load_runtime, runtime_names
from seatrial.devices.toml import toml_text
from seatrial.errors import UserError

GOOD = """
name = "Some laptop"
vendor = "Some"
chip = "Some chip"
class = "laptop"
confidence = "low"
runtime = "generic-cpu"
[memory]
total = "16GB"
source = "box"
[system]
reserved = "2GB"
source = "assumed"
[bandwidth]
nominal = "50GB/s"
source = "data sheet"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_there_are_twenty_real_devices_and_the_reference() -> None:
    names = device_names()
    assert "thin-laptop-8gb" in names
    assert len(names) >= 21


@pytest.mark.parametrize("name", device_names())
def test_every_figure_has_its_source_and_every_variant_reads(name: str) -> None:
    device = load_device(name)
    assert {"memory", "system"} <= set(device.sources)
    assert all(source.strip() for source in device.sources.values())
    assert device.available_bytes() > 0
    assert load_runtime(device.runtime).processor in ("cpu", "gpu", "npu")
    for variant in device.variants:
        changed = load_device(f"{name}:{variant}")
        figures = ("memory_bytes", "nominal_bandwidth_Bps", "storage_read_Bps", "compute")
        assert any(getattr(changed, figure) != getattr(device, figure) for figure in figures), variant


def test_the_reference_laptop_is_as_defined() -> None:
    laptop = load_device("thin-laptop-8gb")
    assert laptop.memory_bytes == 8_000_000_000
    assert laptop.nominal_bandwidth_Bps == 50e9
    assert laptop.compute["npu"].nominal_ops == 20e12
    assert laptop.compute["npu"].effective_ops == 8e12


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("thin-laptop-9gb", "thin-laptop-8gb"),
        ("rpi", "rpi5"),
        ("m4", "apple-m4-air"),
        ("snapdragon", "no device"),
    ],
)
def test_an_unknown_device_lists_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UserError, match=nearest):
        load_device(name)


def test_an_unknown_variant_or_runtime_lists_what_there_is() -> None:
    with pytest.raises(UserError, match="nvme-gen3"):
        load_device("rpi5:floppy")
    with pytest.raises(UserError, match="llama-cpp-metal"):
        load_runtime("llama-metal")


def test_a_file_of_ones_own_is_taken_by_its_path(tmp_path: Path) -> None:
    device = load_device(write(tmp_path, GOOD))
    assert device.memory_bytes == 16_000_000_000
    assert device.available_bytes(4_000_000_000) == 10_000_000_000


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('source = "box"', "", "memory"),
        ('source = "data sheet"', "", "bandwidth"),
        ("[memory]", "[memoir]", "memory"),
        ('nominal = "50GB/s"', 'nominal = "50GB"', "rate"),
        ('total = "16GB"', 'total = "16 G"', "GiB"),
        ('class = "laptop"', 'class = "toaster"', "toaster"),
        ('name = "Some laptop"', "name = 5", "name"),
        ('nominal = "50GB/s"', "", "nominal"),
        ("[memory]", "[memory", "TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        load_device(write(tmp_path, GOOD.replace(old, new)))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load_device(tmp_path / "nowhere.toml")


def test_a_measurement_above_nominal_is_a_warning_in_a_file(tmp_path: Path) -> None:
    measured = '[bandwidth.measured]\nvalue = "60GB/s"\nkind = "read"\nsource = "mine"\n'
    device = load_device(write(tmp_path, GOOD + measured))
    assert any("above the nominal" in warning for warning in device.warnings)


def test_a_measured_file_alone_has_no_nominal_figure(tmp_path: Path) -> None:
    only = GOOD.replace('nominal = "50GB/s"\nsource = "data sheet"\n', "")
    measured = '[bandwidth.measured]\nvalue = "40GB/s"\nkind = "copy"\nsource = "mine"\n'
    device = load_device(write(tmp_path, only + measured))
    assert device.nominal_bandwidth_Bps is None
    assert device.bandwidth_Bps == 40e9
    assert with_measured_bandwidth(device, 45e9).measured_bandwidth_Bps == 45e9


def test_a_variant_with_another_board_forgets_its_measurement() -> None:
    assert load_device("amd-ai7-350").measured_bandwidth_Bps is not None
    assert load_device("amd-ai7-350:lpddr5x").measured_bandwidth_Bps is None


@pytest.mark.parametrize("name", runtime_names())
def test_every_runtime_says_on_how_much_it_stands(name: str) -> None:
    runtime = load_runtime(name)
    assert runtime.fit.date
    for spread in (runtime.decode.spread, runtime.prefill.spread, runtime.prefill.fallback_spread):
        assert 0 < spread.low <= 1 <= spread.high < math.inf
    assert runtime.fit.decode_rows or runtime.fit.prefill_rows or runtime.kind == "reference"
    few = runtime.fit.decode_chips < 3 or runtime.processor == "npu"
    assert runtime.fit.note or not few


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weight_factor = ", "weight_factor = -"),
        ("low = ", "low = 9"),
        ("kv_layout = ", "kv_layout = 3 #"),
        ("[fit]", "[fat]"),
        ("efficiency = ", "efficiency = nan #"),
    ],
)
def test_a_wrong_runtime_is_refused(tmp_path: Path, old: str, new: str) -> None:
    from seatrial.devices.runtime import FOLDER

    text = (FOLDER / "llama-cpp-metal.toml").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(UserError):
        load_runtime(write(tmp_path, text.replace(old, new, 1)))


KEYS = st.text(min_size=1, max_size=12)
VALUES = st.one_of(
    st.text(max_size=20),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, max_size=4)), max_size=6))
def test_what_is_written_reads_back(tmp_path_factory: pytest.TempPathFactory, table: dict) -> None:
    path = tmp_path_factory.mktemp("toml") / "table.toml"
    path.write_text(toml_text(table), encoding="utf-8", newline="")
    read = read_toml(path)
    assert set(read) == set(table)
    for key, value in table.items():
        expected = value if isinstance(value, dict) else {"": value}
        found = read[key] if isinstance(value, dict) else {"": read[key]}
        for name, one in expected.items():
            assert found[name] == (
                pytest.approx(one, rel=1e-5, abs=1e-300) if isinstance(one, float) else one
            )
