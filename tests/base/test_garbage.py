import gc

import pytest

from epochcast.base.garbage import without_collecting


def test_the_search_rests_inside_and_goes_on_behind() -> None:
    with without_collecting():
        assert not gc.isenabled()
        with without_collecting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(KeyError), without_collecting():
        raise KeyError("x")
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
