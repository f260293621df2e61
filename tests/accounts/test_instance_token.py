from __future__ import annotations

from penstock.accounts.instance_token import InstanceTokens


async def test_a_token_tells_its_instance_and_no_other() -> None:
    tokens = InstanceTokens("key")
    seven = tokens.mint(7)
    assert tokens.instance_of(seven) == 7
    assert InstanceTokens("key").mint(7) == seven
    assert InstanceTokens("other").instance_of(seven) is None
    for forged in (
        "",
        "psi_7_",
        seven.replace("psi_7_", "psi_8_"),
        seven[:-1],
        f"{seven}0",
        seven.upper(),
        f"{seven}\n",
    ):
        assert tokens.instance_of(forged) is None
