"""Request and response models of data sources."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr

from penstock.api.pagination import Page
from penstock.api.reconcile.stored_documents import FieldName
from penstock.jobs.http_bodies import Body, Name, Text
from penstock.kit.json_value import JsonObject, JsonValue
from penstock.sources import contract, repository

SourceType = Literal["bigquery", "duckdb", "elasticsearch", "files", "mysql", "postgres", "trino"]
SecretName = Annotated[str, Field(max_length=64, pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=64 * 1024)]
Config = Annotated[
    dict[FieldName, JsonValue],
    Field(
        max_length=100,
        description="The driver's configuration, without secrets.",
        examples=[{"threads": 1}],
    ),
]
Credentials = Annotated[
    dict[SecretName, Secret],
    Field(
        max_length=20,
        description="Such as password or token. Stored encrypted, and never returned.",
        examples=[{}],
        json_schema_extra={"writeOnly": True},
    ),
]


class DataSource(BaseModel):
    id: int = Field(validation_alias="data_source_id", examples=[1])
    name: str = Field(examples=["warehouse"])
    type: str = Field(examples=["duckdb"])
    owner_username: str = Field(validation_alias="owner", examples=["ann"])
    is_default: bool
    config: JsonObject | None = Field(description="Null for callers who may not use it.")
    has_credentials: bool
    created_at: datetime
    updated_at: datetime
    tested_at: datetime | None
    test_ok: bool | None = Field(
        description="The result of the last test; null if the source has changed since."
    )
    test_message: str | None = Field(
        validation_alias="test_says", description="Null for callers who may not use it."
    )


class NewDataSource(Body):
    name: Annotated[Name, Field(examples=["warehouse"])]
    type: Annotated[SourceType, Field(examples=["duckdb"])]
    config: Config = Field(default_factory=dict)
    credentials: Credentials = Field(default_factory=dict)


class ChangedDataSource(Body):
    """Omitted or null fields keep their values; `{}` removes the credentials."""

    name: Annotated[Name, Field(examples=["warehouse"])] | None = None
    config: Config | None = None
    credentials: Credentials | None = None


class TestResult(BaseModel):
    id: int = Field(examples=[1])
    ok: bool
    message: str = Field(
        description="The server's version, or the error.", examples=["DuckDB v2.0.0"]
    )
    seconds: float
    tested_at: datetime


class Table(BaseModel):
    catalog_name: str = Field(examples=["warehouse"])
    schema_name: str = Field(examples=["main"])
    table_name: str = Field(examples=["orders"])
    table_type: str = Field(examples=["table"])


class Column(BaseModel):
    column_name: str = Field(examples=["id"])
    data_type: str = Field(examples=["BIGINT"])
    is_nullable: bool
    ordinal_position: int
    column_default: str | None


class TableSchema(Table):
    columns: list[Column]


class Dropped(BaseModel):
    id: int = Field(examples=[1])


class DataSourceQuery(Page):
    sort_by: Literal["created_at", "id"] = "created_at"
    type: SourceType | None = None


class BrowseQuery(Page):
    sort_by: Literal["name"] = "name"
    sort_order: Literal["asc", "desc"] = "asc"
    prefix: Annotated[
        Text, Field(description="A prefix of a table's name, qualified or not.", examples=["ma"])
    ] = ""


def data_source_view(source: repository.DataSource, *, shown: bool) -> DataSource:
    """Without `shown` the configuration and the test message, which reveal its host, are
    omitted."""
    values = {name: getattr(source, name) for name in repository.DataSource.__slots__}
    hidden = {} if shown else {"config": None, "test_says": None}
    return DataSource.model_validate(values | hidden)


def revealed(credentials: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: secret.get_secret_value() for name, secret in credentials.items()}


def table_view(table: contract.Table) -> Table:
    return Table(**_named(table))


def schema_view(table: contract.Table, columns: Sequence[contract.Column]) -> TableSchema:
    described = [
        Column(
            column_name=c.name,
            data_type=c.data_type,
            is_nullable=c.nullable,
            ordinal_position=c.position,
            column_default=c.default,
        )
        for c in columns
    ]
    return TableSchema(**_named(table), columns=described)


def _named(table: contract.Table) -> dict[str, str]:
    return {
        "catalog_name": table.catalog,
        "schema_name": table.schema,
        "table_name": table.name,
        "table_type": table.kind,
    }
