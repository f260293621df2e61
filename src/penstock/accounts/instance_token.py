"""Tokens of graph servers: an HMAC of the instance id, computed and verified without storage.

    tokens = InstanceTokens(key)
    tokens.mint(7)                  # "psi_7_…", passed to the graph server of instance 7
    tokens.instance_of("psi_7_…")   # 7; None for everything else

A restarted control plane can thus verify the tokens of servers that are already running. A token
ends with its instance (its routes are gone) or when the key is rotated.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from penstock.accounts.service import ServiceCaller

_TOKEN = re.compile(r"psi_([1-9][0-9]{0,15})_[A-Za-z0-9]{64}")


class InstanceTokens:
    def __init__(self, key: str) -> None:
        self._key = hashlib.sha256(b"penstock instance token\0" + key.encode()).digest()

    def mint(self, instance_id: int) -> str:
        proof = hmac.new(self._key, str(instance_id).encode(), hashlib.sha256).hexdigest()
        return f"psi_{instance_id}_{proof}"

    def instance_of(self, token: str) -> int | None:
        match = _TOKEN.fullmatch(token)
        if match is None or not hmac.compare_digest(token, self.mint(int(match[1]))):
            return None
        return int(match[1])

    async def who(self, token: str) -> ServiceCaller | None:
        instance_id = self.instance_of(token)
        return (
            None
            if instance_id is None
            else ServiceCaller(component="wrapper", instance_id=instance_id)
        )
