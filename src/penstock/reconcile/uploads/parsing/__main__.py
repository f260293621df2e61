"""The process that parses one file: `python -m penstock.reconcile.uploads.parsing FOLDER`.

Libraries are imported before the limits are set, so that the limits apply to the file alone.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import python_calamine  # noqa: F401 - loaded before the limits are set

from penstock.kit.errors import InvalidInput, PenstockError
from penstock.kit.limited_process import ANSWER, enter
from penstock.reconcile.recipes.model import Side
from penstock.reconcile.staging.filter_sql import apply_filters
from penstock.reconcile.uploads.parsing.limits import TableLimits
from penstock.reconcile.uploads.parsing.parser import SAMPLE_FILE
from penstock.reconcile.uploads.tabular import Reading, as_parquet

if TYPE_CHECKING:
    from penstock.reconcile.uploads.parsing.messages import ParserAnswer, Request


def main(folder: Path) -> None:
    request = cast("Request", enter(folder))
    try:
        answer = (
            convert(request, folder) if request["task"] == "convert" else sample(request, folder)
        )
    except MemoryError:
        raise
    except PenstockError as e:
        answer = _failure(e)
    except Exception as e:
        traceback.print_exc()
        kind = type(e).__name__
        answer = _failure(InvalidInput(f"The file cannot be read ({kind}).", hint="Save it again."))
    (folder / ANSWER).write_bytes(orjson.dumps(answer, default=str))


def convert(request: Request, folder: Path) -> ParserAnswer:
    reading = Reading(
        name=request["name"],
        encoding=request["encoding"],
        delimiter=request["delimiter"],
        limits=TableLimits(**request["limits"]),
    )
    path = asyncio.run(as_parquet(Path(request["file"]), reading, folder))
    with pq.ParquetFile(path) as file:
        columns = [{"name": field.name, "type": str(field.type)} for field in file.schema_arrow]
        return {"rows": file.metadata.num_rows, "columns": columns}


def sample(request: Request, folder: Path) -> ParserAnswer:
    side = Side.model_validate(request["side"])
    path = apply_filters([Path(request["file"])], side, folder / "scope", request["rows"])
    with pq.ParquetFile(path) as file, pa.OSFile(str(folder / SAMPLE_FILE), "wb") as sink:
        schema = file.schema_arrow
        with pa.ipc.new_file(sink, schema) as writer:
            for batch in file.iter_batches():
                writer.write_batch(batch)
    return {}


def _failure(error: PenstockError) -> ParserAnswer:
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "details": error.details,
        }
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
