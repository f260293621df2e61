from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graphs.duration import LONGEST, parse, text
from penstock.kit.errors import InvalidInput

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("written", "span"),
    [
        ("PT30M", timedelta(minutes=30)),
        ("P1DT12H", timedelta(hours=36)),
        ("P1Y2M3W4DT5H6M7S", timedelta(days=365 + 60 + 21 + 4, hours=5, minutes=6, seconds=7)),
        ("P1M", 30 * DAY),
        ("PT1M", timedelta(minutes=1)),
        ("P0DT1S", timedelta(seconds=1)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("PT1,5H", timedelta(minutes=90)),
        ("PT0.000001S", timedelta(microseconds=1)),
        ("P3653D", LONGEST),
    ],
)
def test_a_duration_is_read_as_iso_8601_means_it(written: str, span: timedelta) -> None:
    assert parse(written) == span


@pytest.mark.parametrize(
    "written",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "-PT5M",
        "P-1D",
        "+P1D",
        "P0D",
        "PT0S",
        "PT0.0000001S",
        "1D",
        "P1",
        "P1D12H",
        "PT1D",
        "P1H",
        "pt5m",
        "P1.5DT1H",
        "P1D ",
        "P1D\n",
        "P٣D",
        "P1W2Y",
        "PT" + "0" * 200 + "1S",
        "P3653DT0.000001S",
        "P999999999999Y",
    ],
)
def test_what_is_no_duration_is_refused_by_name(written: str) -> None:
    with pytest.raises(InvalidInput, match=r"^ttl: ") as refused:
        parse(written, field="ttl")
    assert refused.value.details["field"] == "ttl"
    assert len(refused.value.message) < 120


def test_a_configured_maximum_holds_at_it_and_not_past_it() -> None:
    assert parse("P7D", longest=7 * DAY) == 7 * DAY
    with pytest.raises(InvalidInput, match="longer than P7D"):
        parse("P7DT1S", longest=7 * DAY)


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=LONGEST))
def test_what_is_written_is_read_again(span: timedelta) -> None:
    assert abs(parse(text(span)) - span) <= timedelta(microseconds=1)
