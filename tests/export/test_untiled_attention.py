"""Which attention kernel a session opens with: the switch lies in the environment and must not stay there."""

import os
import threading

import pytest

from seatrial.export.runtime import untiled_attention

SWITCH = "ORT_GQA_DISABLE_FLASH_ATTENTION"


@pytest.fixture(autouse=True)
def _no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)


def test_the_switch_is_set_inside_and_gone_afterwards() -> None:
    with untiled_attention():
        assert os.environ[SWITCH] == "1"
    assert SWITCH not in os.environ


def test_the_switch_is_gone_after_an_error() -> None:
    with pytest.raises(RuntimeError), untiled_attention():
        raise RuntimeError
    assert SWITCH not in os.environ


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    with untiled_attention():
        assert os.environ[SWITCH] == "0"
    assert os.environ[SWITCH] == "0"


def test_two_threads_do_not_take_it_from_each_other() -> None:
    """The second waits: else it would find the first one's switch, take it for the user's, and lose it."""
    entered, seen = threading.Event(), []

    def second() -> None:
        entered.wait()
        with untiled_attention():
            seen.append(os.environ.get(SWITCH))

    other = threading.Thread(target=second)
    other.start()
    with untiled_attention():
        entered.set()
        other.join(timeout=0.2)
        assert not seen
    other.join()
    assert seen == ["1"]
    assert SWITCH not in os.environ
