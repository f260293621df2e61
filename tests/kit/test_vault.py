from __future__ import annotations

import base64

import pytest
from pydantic import SecretStr

from penstock.kit.errors import Internal, InvalidInput
from penstock.kit.vault import SecretKeyMissing, Vault, new_key
from penstock.wiring.settings import Settings

SECRET = b"hunter2"


def test_what_is_sealed_opens_in_its_own_row() -> None:
    vault = Vault([new_key()])
    sealed = vault.seal(SECRET, row="data_source:1")
    assert vault.open(sealed, row="data_source:1") == SECRET
    assert SECRET not in sealed
    assert vault.seal(SECRET, row="data_source:1") != sealed


def test_a_secret_copied_to_another_row_does_not_open_there() -> None:
    vault = Vault([new_key()])
    sealed = vault.seal(SECRET, row="data_source:1")
    with pytest.raises(Internal, match="belongs to another row"):
        vault.open(sealed, row="data_source:2")


def test_a_changed_bit_is_found_wherever_it_is() -> None:
    vault = Vault([new_key()])
    sealed = vault.seal(SECRET, row="r")
    for place in range(len(sealed)):
        changed = bytes(byte ^ (place == at) for at, byte in enumerate(sealed))
        with pytest.raises((Internal, SecretKeyMissing)):
            vault.open(changed, row="r")
    for length in range(len(sealed)):
        with pytest.raises((Internal, SecretKeyMissing)):
            vault.open(sealed[:length], row="r")


def test_the_first_key_seals_and_every_key_opens() -> None:
    old, new = new_key(), new_key()
    sealed = Vault([old]).seal(SECRET, row="r")
    both = Vault([new, old])
    assert both.open(sealed, row="r") == SECRET
    assert not both.is_current(sealed)
    anew = both.seal(SECRET, row="r")
    assert both.is_current(anew)
    assert Vault([new]).open(anew, row="r") == SECRET
    with pytest.raises(SecretKeyMissing) as missing:
        Vault([new]).open(sealed, row="r")
    assert missing.value.hint is not None
    assert "PENSTOCK_SECRET_KEYS_OLD" in missing.value.hint


def test_a_vault_without_a_key_keeps_nothing_and_names_the_setting() -> None:
    empty = Vault([])
    for refused in (lambda: empty.seal(SECRET, row="r"), lambda: empty.open(b"\x01", row="r")):
        with pytest.raises(SecretKeyMissing) as missing:
            refused()
        assert "PENSTOCK_SECRET_KEY" in str(missing.value.hint)


@pytest.mark.parametrize(
    "key", ["", "short", "x" * 43, base64.b64encode(b"x" * 31).decode(), "ü" * 44, "A" * 88]
)
def test_a_key_that_is_none_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Vault([key])
    assert "32 bytes in base64" in refused.value.message
    assert not key or key not in f"{refused.value.message} {refused.value.hint}"


def test_keys_of_either_alphabet_and_with_a_line_end_are_the_same_key() -> None:
    raw = b"\xfb\xff" * 16
    sealed = Vault([base64.b64encode(raw).decode()]).seal(SECRET, row="r")
    assert Vault([base64.urlsafe_b64encode(raw).decode() + "\n"]).open(sealed, row="r") == SECRET


def test_nothing_that_holds_a_key_shows_it() -> None:
    key, old = new_key(), new_key()
    settings = Settings(secret_key=SecretStr(key), secret_keys_old=SecretStr(f"{old}, {old}"))
    assert settings.secret_keys == [key, old, old]
    assert key not in f"{settings!r} {Vault([key])!r} {vars(Vault([key]))!r}"
    assert Settings(secret_keys_old=SecretStr(old)).secret_keys == []


@pytest.mark.parametrize(
    ("host", "allowed", "private"),
    [
        ("127.0.0.1", None, True),
        ("::1", None, True),
        ("localhost", None, True),
        ("0.0.0.0", None, False),
        ("10.1.2.3", None, False),
        ("0.0.0.0", True, True),
        ("127.0.0.1", False, False),
    ],
)
def test_private_sources_are_for_a_control_plane_on_loopback_unless_told(
    host: str, allowed: bool | None, private: bool
) -> None:
    assert Settings(host=host, allow_private_sources=allowed).private_sources is private
