"""Settings of the storage of results."""

from __future__ import annotations

from pydantic import Field, SecretStr

from penstock.kit.settings import HomeSettings


class StorageSettings(HomeSettings):
    """An object store, or a folder of the home."""

    storage_url: str | None = Field(
        None,
        description="Where results are kept: file:///folder, s3://bucket/prefix,"
        " gs://bucket/prefix.",
    )
    storage_engine_url: str | None = Field(
        None,
        description="What a query engine calls the same place, where it has another name for it.",
    )
    storage_endpoint: str | None = Field(
        None, description="The address of an S3 or GCS that is not the vendor's."
    )
    storage_region: str = Field("us-east-1", description="Region of the S3 bucket.")
    storage_access_key_id: str | None = Field(
        None, description="S3 key; without one the machine's own identity."
    )
    storage_secret_access_key: SecretStr | None = Field(None, description="The secret of that key.")
    storage_allow_http: bool = Field(
        False, description="Whether the storage may be reached without TLS."
    )

    @property
    def storage_root(self) -> str:
        """The storage in force: without another one, a folder of our home."""
        return self.storage_url or f"file://{self.home / 'storage'}"
