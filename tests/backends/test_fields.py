"""What stands in a payload or in metadata is read for what it is, and nonsense counts as missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsift.backends.fields import Fields, instant
from memsift.backends.places import Place
from memsift.errors import InvalidType, InvalidValue

EVERY = frozenset({"accessed_tick", "created_tick", "access_count", "cost", "accessed_at"})


def columns(fields, *found):
    return {name: column.tolist() for name, column in fields.columns(found, EVERY).items()}


@pytest.mark.parametrize(
    ("unit", "value", "micros"),
    [
        ("seconds", 3, 3_000_000),
        ("seconds", 1.5, 1_500_000),
        ("milliseconds", 3, 3000),
        ("microseconds", 3, 3),
        ("seconds", "1970-01-01T00:00:02", 2_000_000),
        ("iso", "1970-01-01T00:00:02Z", 2_000_000),
        ("milliseconds", "1970-01-01T05:30:02+05:30", 2_000_000),
        ("seconds", "1970-01-02", 86_400_000_000),
        ("seconds", -5, 0),
        ("seconds", "1900-01-01", 0),
        ("seconds", "9999-12-31T23:59:59.999999-12:00", None),
        ("seconds", 1e300, None),
        ("microseconds", 2**70, None),
    ],
)
def test_times_are_microseconds_whatever_they_were(unit, value, micros):
    (tick,) = columns(Fields(unit=unit), {"time": value})["accessed_tick"]
    assert tick == micros if micros is not None else 2.5e17 < tick <= 2**62


@pytest.mark.parametrize("nonsense", [None, True, "yesterday", "", float("nan"), [], {}, "２０"])
def test_nonsense_counts_as_missing(nonsense):
    found = dict.fromkeys(("time", "count", "cost", "pin"), nonsense) | {"created": 7}
    if nonsense is True:
        del found["pin"]
    read = columns(Fields(), found)
    assert read["accessed_tick"] == [7_000_000], "the creation stands in"
    assert read["access_count"] == [0]
    assert read["cost"] == [1]
    assert read["pinned"] == [False]


def test_counters_are_saturated():
    fields = Fields()
    assert columns(fields, {"count": 2**80, "cost": -4})["access_count"] == [2**63 - 1]
    assert fields.accessed({"count": 2**63 - 1}, 5)["count"] == 2**63 - 1
    assert columns(fields, {"cost": -4})["cost"] == [0]


@given(
    st.integers(0, 4 * 10**15), st.sampled_from(["seconds", "milliseconds", "microseconds", "iso"])
)
def test_what_is_written_is_read_again(micros, unit):
    fields = Fields(unit=unit)
    (tick,) = columns(fields, fields.accessed({}, micros))["accessed_tick"]
    assert tick == (micros // 1000 * 1000 if unit == "milliseconds" else micros)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9000, 1, 1)))
def test_texts_without_a_zone_are_utc(moment):
    assert instant(moment.isoformat()) == moment.replace(tzinfo=UTC)
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    (tick,) = columns(Fields(), {"time": moment.isoformat()})["accessed_tick"]
    assert tick == since // timedelta(microseconds=1)


def test_a_mark_tells_every_mapped_field():
    fields = Fields(tenant="who")
    base = {"time": 1, "created": 1, "count": 1, "pin": False, "cost": 1, "tenant": "a"}
    marks = {fields.mark(base)}
    for role in base:
        marks.add(fields.mark(base | {role: 2 if role != "tenant" else "b"}))
    assert len(marks) == 7
    assert fields.mark(dict(base)) in marks


def test_tenants_are_texts():
    fields = Fields(tenant="who")
    told = [fields.tenant_of({"tenant": t}) for t in ("a", 7, True, None, ["a"], "")]
    assert told == ["a", "7", "true", None, None, ""]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"time": 3}, InvalidType),
        ({"count": ""}, InvalidValue),
        ({"pin": "a\0"}, InvalidValue),
        ({"cost": "\ud800"}, InvalidValue),
        ({"time": None}, InvalidType),
        ({"unit": "hours"}, InvalidValue),
        ({"time": "same", "count": "same"}, InvalidValue),
    ],
)
def test_names_are_checked(wrong, error):
    with pytest.raises(error, match=r"Fields\."):
        Fields(**wrong)


def test_columns_have_the_view_s_types():
    found = Fields().columns([], EVERY)
    assert found["accessed_tick"].dtype == np.int64
    assert found["accessed_at"].dtype == np.float64
    assert found["pinned"].dtype == np.bool_


# ---- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("q://host/c", Place("c", None, "host", 9, False)),
        ("q+https://host:1/a%2Fb", Place("a/b", None, "host", 1, True)),
        ("q://[::1]:2/c", Place("c", None, "::1", 2, False)),
        ("q://host", Place("default", None, "host", 9, False)),
    ],
)
def test_urls_of_servers(url, place):
    assert Place.of(url, "q", "default", 9, "KEY") == place
    assert Place.of(place.named("q"), "q", None, 9, "KEY") == place


def test_urls_of_folders(tmp_path):
    place = Place.of(f"q+path://{tmp_path}/a%20b#c%23d", "q", None, 9, "KEY")
    assert (place.folder, place.collection) == (tmp_path / "a b", "c#d")
    assert Place.of(place.named("q"), "q", None, 9, "KEY") == place


@pytest.mark.parametrize(
    "url",
    [
        "q://s3cret@host/c",
        "q://user:s3cret@host/c",
        "q://host/c?api_key=s3cret",
        "q://host/c#s3cret",
        "q://host:s3cret/c",
        "q://host:99999/c",
        "q://[s3cret/c",
        "q://",
        "q:///c",
        "p://host/c",
        "q+ftp://host/c",
        "q+path://#c",
        "q+path://folder",
        "host/s3cret",
        "q+path://a\0b#c",
    ],
)
def test_other_urls_are_refused_and_nothing_of_them_is_told(url):
    with pytest.raises(InvalidValue) as told:
        Place.of(url, "q", None, 9, "KEY")
    assert "s3cret" not in str(told.value)
