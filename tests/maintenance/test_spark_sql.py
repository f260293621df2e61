"""SQL statements and protocol encoding for Spark; needs no server."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from penstock.kit.errors import InvalidInput, PenstockError
from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.actions.model import OPTIONS, Name, parse
from penstock.maintenance.engines.contract import EngineFailed, EngineUnavailable
from penstock.maintenance.engines.spark import protobuf, thrift
from penstock.maintenance.engines.spark.address import read_address
from penstock.maintenance.engines.spark.failure import failure
from penstock.maintenance.engines.spark.sql import literal, statement
from penstock.maintenance.errors import CommitConflict, CommitUnknown, Refused
from penstock.maintenance.payloads import TableName
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, Catalogs, open_catalog
from tests.maintenance.tables import SampleTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

NAME = TableName(catalog="lake", db="shop", table="orders")
NOON = datetime(2026, 5, 10, 12, tzinfo=UTC)
HOSTILE = [
    "o'); DROP TABLE x --",
    "a\\",
    "\\'",
    "`",
    "*/ SELECT 1 /*",
    "${env:HOME}",
    "line\nbreak",
    "\\u0027",
    "'''",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    home = tmp_path_factory.mktemp("lake")
    properties = {"warehouse": (home / "warehouse").as_uri()}
    catalog = open_catalog(
        CatalogConfig(
            name="lake", type="sql", uri=f"sqlite:///{home}/catalog.db", properties=properties
        )
    )
    yield SampleTable(catalog).create(files=0).table
    catalog.close()


@pytest.fixture
def render(table: Table) -> Any:
    def build(action: Any, name: TableName = NAME, **more: Any) -> str:
        run = ActionContext(job_id=7, attempt="a1", now=lambda: NOON)
        return statement(parse([action])[0], name, "kept", table, run, **more)

    return build


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        (
            "expire_snapshots",
            "older_than => TIMESTAMP '2026-05-05 12:00:00.000000Z', retain_last => 3, "
            "stream_results => true",
        ),
        (
            {"name": "expire_snapshots", "older_than_seconds": 3600, "retain_last": 2},
            "older_than => TIMESTAMP '2026-05-10 11:00:00.000000Z', retain_last => 2, "
            "stream_results => true",
        ),
        ("rewrite_data_files", "options => map('min-input-files', '5')"),
        (
            {
                "name": "rewrite_data_files",
                "target_file_bytes": 1 << 20,
                "min_input_files": 2,
                "max_files": 9,
            },
            "options => map('target-file-size-bytes', '1048576', 'min-input-files', '2', "
            "'max-files-to-rewrite', '9')",
        ),
        (
            {
                "name": "rewrite_data_files",
                "rewrite_all": True,
                "max_group_bytes": 1 << 30,
                "force": True,
            },
            "options => map('min-input-files', '5', 'max-file-group-size-bytes', '1073741824', "
            "'rewrite-all', 'true')",
        ),
        (
            {"name": "rewrite_data_files", "where": "day = 'd1'"},
            r"options => map('min-input-files', '5'), where => 'day = \'d1\''",
        ),
        (
            {"name": "rewrite_data_files", "sort_order": "day, id desc"},
            "options => map('min-input-files', '5'), strategy => 'sort', "
            "sort_order => '`day` ASC NULLS FIRST, `id` DESC NULLS LAST'",
        ),
        (
            {"name": "rewrite_data_files", "sort_order": "zorder(id, day)"},
            "options => map('min-input-files', '5'), strategy => 'sort', "
            "sort_order => 'zorder(`id`, `day`)'",
        ),
        (
            {"name": "rewrite_data_files", "sort_order": "table"},
            "options => map('min-input-files', '5'), strategy => 'sort'",
        ),
        ("rewrite_position_delete_files", "options => map()"),
        (
            {"name": "rewrite_position_delete_files", "min_input_files": 2},
            "options => map('min-input-files', '2')",
        ),
        ("rewrite_manifests", "use_caching => false"),
        ("remove_orphan_files", "older_than => TIMESTAMP '2026-05-07 12:00:00.000000Z'"),
    ],
)
def test_an_action_is_one_call_with_its_options(render: Any, action: Any, arguments: str) -> None:
    name = action if isinstance(action, str) else action["name"]
    assert render(action).endswith(
        f"*/ CALL `kept`.system.{name}(table => '`shop`.`orders`', {arguments})"
    )


def test_only_the_orphans_of_a_dry_run_are_asked_for(render: Any) -> None:
    assert render("remove_orphan_files", dry_run=True).endswith(", dry_run => true)")
    assert "dry_run" not in render("rewrite_manifests", dry_run=True)


def test_a_statement_says_who_asks(render: Any) -> None:
    comment = re.match(r"/\* (\{.*?\}) \*/ CALL", render("rewrite_manifests"))
    assert comment
    assert json.loads(comment[1]) == {
        "app": "penstock",
        "job": 7,
        "attempt": "a1",
        "action": "rewrite_manifests",
        "table": "lake.shop.orders",
    }


def test_what_a_table_promises_its_readers_is_not_undercut(sample: SampleTable) -> None:
    properties = {
        "history.expire.max-snapshot-age-ms": str(10 * 86_400_000),
        "history.expire.min-snapshots-to-keep": "5",
    }
    table = sample.create(files=0, **properties).table
    [action] = parse([{"name": "expire_snapshots", "older_than_seconds": 0, "retain_last": 1}])
    sql = statement(
        action, NAME, "kept", table, ActionContext(job_id=7, attempt="a", now=lambda: NOON)
    )
    assert "older_than => TIMESTAMP '2026-04-30 12:00:00.000000Z', retain_last => 5" in sql


MAPPED = {
    Name.EXPIRE_SNAPSHOTS: {"older_than_seconds", "retain_last"},
    Name.REWRITE_DATA_FILES: {
        *(
            "target_file_bytes",
            "min_input_files",
            "max_group_bytes",
            "max_files",
            "sort_order",
            "where",
        ),
        *("rewrite_all", "force"),
    },
    Name.REWRITE_POSITION_DELETE_FILES: {"min_input_files"},
    Name.REWRITE_MANIFESTS: set[str](),
    Name.REMOVE_ORPHAN_FILES: {"older_than_seconds"},
}


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, option) for name in Name for option in OPTIONS[name] if option not in MAPPED[name]],
)
def test_an_option_that_spark_has_no_word_for_is_refused_with_the_reason(
    render: Any, name: Name, option: str
) -> None:
    spec = OPTIONS[name][option]
    value: Any = "text" if spec.kind is str else True if spec.kind is bool else int(spec.high)
    with pytest.raises(Refused, match=option):
        render({"name": str(name), option: value})


@pytest.mark.parametrize("order", ["id sideways", "zorder(id, )", "a b c", "id; drop", "${x}"])
def test_an_order_that_is_none_is_refused(render: Any, order: str) -> None:
    with pytest.raises(Refused):
        render({"name": "rewrite_data_files", "sort_order": order})


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_literal(text: str) -> None:
    """As Spark reads one: to the first quote that no backslash stands before, and no variable on
    the way."""
    assert re.fullmatch(r"'(?:[^'\\]|\\.)*'", literal(text), re.DOTALL)
    assert "$" not in literal(text)
    assert "\n" not in literal(text)


@pytest.mark.parametrize("text", [text for text in HOSTILE if "$" not in text])
def test_no_name_leaves_its_quotes_or_the_comment(render: Any, text: str) -> None:
    name = TableName(catalog="lake", db="shop", table=text.replace(".", "_"))
    sql = render("rewrite_manifests", name)
    comment, _, call = sql.partition(" */ ")
    assert "*/" not in comment
    assert comment.count("/*") == 1
    assert re.fullmatch(
        r"CALL `kept`\.system\.rewrite_manifests"
        r"\(table => '(?:[^'\\]|\\.)*', use_caching => false\)",
        call,
    )


def test_a_name_that_spark_would_take_for_a_variable_is_refused(render: Any) -> None:
    with pytest.raises(Refused, match="variable"):
        render("rewrite_manifests", TableName(catalog="lake", db="shop", table="${env:HOME}"))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [NOT_FOUND] "
            "org.apache.spark.sql.AnalysisException: [NOT_FOUND] There is no table.\n"
            "\tat java.Thread.run",
            EngineFailed,
            "There is no table.",
        ),
        (
            "x.ValidationException: Cannot commit, found new delete for replaced data file",
            CommitConflict,
            "Cannot commit",
        ),
        ("x.CommitStateUnknownException: Timed out", CommitUnknown, "unknown commit state"),
        (
            "java.lang.IllegalStateException: SparkContext has been shutdown",
            EngineUnavailable,
            "shutdown",
        ),
        ("", EngineFailed, "Spark sent no error message"),
    ],
)
def test_what_spark_says_is_one_line_and_of_its_kind(
    text: str, kind: type[PenstockError], message: str
) -> None:
    error = failure(text)
    assert type(error) is kind
    assert message in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"url": "jdbc:hive2://spark:10000"}, "not the address"),
        ({"url": "hive2://"}, "not the address"),
        ({"url": "hive2://me:secret@spark"}, "host, a port and a path"),
        ({"url": "hive2://spark", "password": "x"}, "in the clear"),
        ({"url": "sc://spark", "token": "x"}, "in the clear"),
    ],
)
def test_an_address_that_is_none_or_gives_a_secret_away_is_refused(
    settings: dict[str, str], why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        Catalogs({}, {"far": {"type": "spark", "catalog": "lake", **settings}})


def test_an_address_says_how_it_is_spoken_to() -> None:
    plain = read_address({"url": "hive2://spark", "catalog": "lake"})
    assert (plain.port, plain.tls, plain.http, plain.connect) == (10_000, False, False, False)
    http = read_address({"url": "hive2+https://spark:1/thrift", "catalog": "lake", "password": "x"})
    assert (http.port, http.tls, http.http, http.path) == (1, True, True, "thrift")
    connect = read_address(
        {"url": "sc+tls://spark", "catalog": "lake", "token": "hush", "password": "hush"}
    )
    assert (connect.port, connect.tls, connect.connect) == (443, True, True)
    assert "hush" not in repr(connect)


def test_a_thrift_answer_that_is_cut_anywhere_is_an_error_and_never_a_wrong_value() -> None:
    head = b"\x80\x01\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x00"
    text, numbers = (
        b"\x0b\x00\x02\x00\x00\x00\x03abc",
        b"\x0f\x00\x03\x08\x00\x00\x00\x01\x00\x00\x00\x07",
    )
    whole = head + b"\x0c\x00\x00" + text + numbers + b"\x00\x00"
    record = thrift.answer(whole)
    assert (record.text(2), list(record.values(3))) == ("abc", [7])
    for size in range(len(whole)):
        with pytest.raises(EngineFailed):
            thrift.answer(whole[:size])


def test_a_message_reads_as_it_was_written() -> None:
    raw = protobuf.encode({1: "one", 2: {5: {1: "SELECT"}}, 3: 300, 7: ["a", "b"]})
    message = protobuf.decode(raw)
    assert (message.text(1), message.message(2).message(5).text(1)) == ("one", "SELECT")
    assert message.fields[7] == [b"a", b"b"]
    assert 3 not in message
    with pytest.raises(ValueError, match="truncated"):
        protobuf.decode(raw[:-1])
