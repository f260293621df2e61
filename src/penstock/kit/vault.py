"""Secrets at rest: AES-256-GCM, bound to the row they belong to, with keys that can be changed.

A sealed secret is `version, key id, nonce, ciphertext`. The row's name goes in as associated data,
so a secret copied to another row does not open there. The first key seals; all of them open, until
`penstock rekey` has sealed everything anew and the old ones can be dropped. A vault without a key
keeps nothing: it refuses, and names the setting.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.kit.errors import Internal, InvalidInput, PenstockError

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION = b"\x01"
_ID, _NONCE = 4, 12


class SecretKeyMissing(PenstockError):
    """There is no key, or not the one that sealed this."""

    code = "SECRET_KEY_MISSING"
    status = 503


def new_key() -> str:
    """A key as settings take it."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


class Vault:
    def __init__(self, keys: Sequence[str]) -> None:
        parsed = [_key(text) for text in keys]
        self._keys = {_key_id(key): AESGCM(key) for key in parsed}
        self._current = _key_id(parsed[0]) if parsed else b""

    def seal(self, secret: bytes, *, row: str) -> bytes:
        if not self._keys:
            raise _no_key()
        nonce = os.urandom(_NONCE)
        sealed = self._keys[self._current].encrypt(nonce, secret, row.encode())
        return _VERSION + self._current + nonce + sealed

    def open(self, sealed: bytes, *, row: str) -> bytes:
        version, key_id, rest = sealed[:1], sealed[1 : 1 + _ID], sealed[1 + _ID :]
        if not self._keys:
            raise _no_key()
        key = self._keys.get(key_id)
        if version != _VERSION or key is None:
            raise SecretKeyMissing(
                f"The secret of {row} was sealed with a key that is not here.",
                hint="Add the old key to PENSTOCK_SECRET_KEYS_OLD.",
            )
        try:
            return key.decrypt(rest[:_NONCE], rest[_NONCE:], row.encode())
        except (InvalidTag, ValueError):
            raise Internal(f"The secret of {row} was changed, or belongs to another row.") from None

    def is_current(self, sealed: bytes) -> bool:
        return sealed[1 : 1 + _ID] == self._current


def _no_key() -> SecretKeyMissing:
    return SecretKeyMissing(
        "This control plane has no secret key, so it can neither keep nor use credentials.",
        hint="Set PENSTOCK_SECRET_KEY; `penstock rekey --new-key` makes one.",
    )


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 32:
        raise InvalidInput(
            "A secret key must be 32 bytes in base64.", hint="Make one: penstock rekey --new-key"
        )
    return key


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"penstock key id" + key).digest()[:_ID]
