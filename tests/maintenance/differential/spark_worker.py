"""A Spark session with Java's Iceberg, answering reads and running statements.

Run by `readers.py` in Spark's own environment. Reads go by the metadata file, statements by a
catalog of folders (`VersionedFolders` of `tables.py` hands tables over).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import to_arrow_schema

from tests.maintenance.differential.worker_loop import Metadata, answer_of, error_text, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from py4j.java_gateway import JavaObject

    from tests.maintenance.differential.worker_loop import Read, Request

CATALOG = "folders"
WHICH = "which read of the union"


class Spark:
    def __init__(self, warehouse: str) -> None:
        self._session = _session(warehouse)
        self._session.sparkContext.setLogLevel("ERROR")

    def run(self, request: Request) -> list[list[object]]:
        """Statements one after the other; the rows of the last one."""
        rows = None
        for statement in request["statements"]:
            rows = self._session.sql(statement)
        return [] if rows is None else [list(row) for row in rows.collect()]

    def delete_equal(self, request: Request) -> None:
        """An equality delete of one value in each partition, by Iceberg's own writers in Java: no
        statement of Spark makes one."""
        java, iceberg = self._session._jvm, self._session._jvm.org.apache.iceberg
        table = iceberg.spark.Spark3Util.loadIcebergTable(
            self._session._jsparkSession, request["table"]
        )
        ids = self._session.sparkContext._gateway.new_array(java.int, 1)
        ids[0] = request["field"]
        field_names = java.java.util.HashSet()
        field_names.add(request["field"])
        schema = iceberg.types.TypeUtil.select(table.schema(), field_names)
        row = iceberg.data.GenericRecord.create(schema)
        row.set(0, request["value"])
        change = table.newRowDelta()
        for spec, partition in self._partitions(table):
            writers = iceberg.data.GenericAppenderFactory(table.schema(), spec, ids, schema, None)
            output = table.io().newOutputFile(f"{table.location()}/data/{uuid4().hex}.parquet")
            encrypted = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
            writer = writers.newEqDeleteWriter(encrypted, iceberg.FileFormat.PARQUET, partition)
            writer.write(row)
            writer.close()
            change.addDeletes(writer.toDeleteFile())
        change.commit()

    def _partitions(self, table: JavaObject) -> Iterator[tuple[JavaObject, JavaObject]]:
        """Each live one, once."""
        tasks = table.newScan().planFiles().iterator()
        seen = set()
        while tasks.hasNext():
            file = tasks.next().file()
            key = (file.specId(), file.partition().toString())
            if key not in seen:
                seen.add(key)
                yield table.specs().get(file.specId()), file.partition().copy()

    def read(self, request: Request) -> list[dict[str, object]]:
        file, reads = str(request["metadata"]), list(request["reads"])
        metadata = Metadata(file)
        groups: dict[int | str, list[int]] = defaultdict(list)
        for number, read in enumerate(reads):
            schema = metadata.schema(read)
            groups[str(read) if schema is None else schema["schema-id"]].append(number)
        answers: dict[int, dict[str, object]] = {}
        for group in groups.values():
            answers |= self._read_group(file, metadata, {at: reads[at] for at in group})
        return [answers[at] for at in range(len(reads))]

    def _read_group(
        self, file: str, metadata: Metadata, reads: Mapping[int, Read]
    ) -> dict[int, dict[str, object]]:
        """Reads of one schema as one query; one by one where that fails, to tell which do."""
        schema = metadata.schema(next(iter(reads.values())))
        try:
            table = self._collect({at: self._frame(file, metadata, r) for at, r in reads.items()})
            number = table.column(table.num_columns - 1)
            rows = table.remove_column(table.num_columns - 1)
            return {at: answer_of(rows.filter(pc.equal(number, at)), schema) for at in reads}
        except Exception as e:
            if len(reads) == 1:
                return {at: {"error": error_text(e)} for at in reads}
        singles = [self._read_group(file, metadata, {at: read}) for at, read in reads.items()]
        return {at: answer for single in singles for at, answer in single.items()}

    def _frame(self, file: str, metadata: Metadata, read: Read) -> DataFrame:
        reader = self._session.read.format("iceberg")
        if isinstance(read, str):
            reader = reader.option(metadata.kind_of_ref(read), read)
        elif read is not None:
            reader = reader.option("snapshot-id", read)
        return reader.load(file)

    def _collect(self, frames: Mapping[int, DataFrame]) -> pa.Table:
        """All rows, and in the last column the number of the frame that they are from."""
        numbered = [frame.withColumn(WHICH, lit(at)) for at, frame in frames.items()]
        union = reduce(DataFrame.unionAll, numbered)
        batches = union._collect_as_arrow()
        return pa.Table.from_batches(batches) if batches else _empty(union)


def _empty(frame: DataFrame) -> pa.Table:
    return to_arrow_schema(frame.schema).empty_table()


def _session(warehouse: str) -> SparkSession:
    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "spark.default.parallelism": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        # Tiny tables: to compile a plan takes longer than to run it.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": warehouse,
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    spark = Spark(sys.argv[1])
    serve({"read": spark.read, "run": spark.run, "delete_equal": spark.delete_equal})
