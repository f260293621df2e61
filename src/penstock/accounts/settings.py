"""Settings of identity providers: OpenID Connect, and Kubernetes for workers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.kit.config import Section


class AccountSettings(Section):
    """Who says who somebody is."""

    oidc_issuer: str | None = Field(
        None, description="The identity provider, as its tokens name it; unset means none."
    )
    oidc_audience: str = Field("penstock", description="Whom the provider's tokens must be for.")
    oidc_jwks_url: str | None = Field(
        None, description="Where its keys are; unset means: it is asked where."
    )
    oidc_username_claim: str = Field("email", description="The claim that names the user.")
    oidc_email_claim: str = Field("email", description="The claim with the e-mail address.")
    oidc_role_claim: str | None = Field(
        None,
        description="The claim with roles, such as realm_access.roles; unset means: newcomers are"
        " analysts.",
    )
    oidc_roles: str | None = Field(
        None,
        description="What the provider calls our roles: graph-users=analyst,graph-ops=ops; unset"
        " means: as we do.",
    )
    oidc_leeway_seconds: Annotated[int, Field(ge=0, le=300)] = Field(
        60, description="How far the provider's clock may be from ours."
    )
    oidc_allow_private: bool = Field(
        False, description="Whether the provider may be on a private network or on this machine."
    )
    token_review_workers: str | None = Field(
        None,
        description="Service accounts whose tokens make a worker, as namespace/name with commas"
        " between them; set, the Kubernetes API server is asked whose a service token is.",
    )
    token_review_wrappers: str | None = Field(
        None,
        description="Service accounts of graph servers; which instance theirs is, the pod's name"
        " says.",
    )
    token_review_audience: str = Field(
        "penstock", description="Whom service-account tokens must be for."
    )
