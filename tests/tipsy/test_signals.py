"""Each signal's value and its rule for what it does not know, against plain Python."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhybrid import Memory, Profile
from memhybrid.errors import ConfigError
from memhybrid.profiles import FieldMap
from memhybrid.protocols import Float64
from memhybrid.signals import SignalContext
from memhybrid.signals.usage import usage_value
from memhybrid.state.ledger import UsageEntry
from memhybrid.times import parse_time
from tests.conftest import make_memory
from tests.tipsy.conftest import DAY, NOW, Values, everything, values_in

many = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MOMENT = datetime(2025, 6, 5, 12, 0, tzinfo=timezone.utc)


# --- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        MOMENT,
        MOMENT.replace(tzinfo=None),
        MOMENT.astimezone(timezone(timedelta(hours=8))),
        "2025-06-05T12:00:00+00:00",
        "2025-06-05T12:00:00Z",
        "2025-06-05T12:00:00",
        "2025-06-05 12:00:00",
        "2025-06-05T12:00",
        "2025-06-05T12:00:00.000000Z",
        "2025-06-05T12:00:00.0Z",
        "20250605T120000Z",
        "2025-06-05T20:00:00+08:00",
        "2025-06-05T20:00:00+0800",
        int(MOMENT.timestamp()),
        MOMENT.timestamp(),
        int(MOMENT.timestamp()) * 1000,
    ],
    ids=str,
)
def test_one_moment_in_every_form_has_one_recency(values: Values, form: Any) -> None:
    """Aware and naive datetimes, ISO text, epoch seconds and milliseconds mean the same moment; naive means UTC."""
    expected = 1 - (NOW - MOMENT.timestamp()) / DAY / 30
    assert values("recency", [{"created_at": form}]) == [pytest.approx(expected, abs=1e-9)]


@pytest.mark.parametrize(
    "form", ["", "n/a", "NaN", "nan", "yesterday", "2025-13-40", "1749124800", 1_749_124_800_000_000, True, -1e300]
)
def test_what_is_no_time_is_not_known(values: Values, form: Any) -> None:
    """Text that is no date, microseconds and booleans are refused, never misread: recency is unknown, the memory stays."""
    assert values("recency", [{"created_at": form}, {"created_at": NOW}]) == [None, 1.0]


def test_an_unreadable_update_falls_back_to_the_creation(values: Values) -> None:
    """`updated_at` counts where it can be read, else `created_at`, else recency is unknown."""
    got = values(
        "recency",
        [
            {"updated_at": NOW, "created_at": NOW - 15 * DAY},
            {"updated_at": "n/a", "created_at": NOW - 15 * DAY},
            {"created_at": NOW - 15 * DAY},
            {"updated_at": ""},
            {},
        ],
    )
    assert got == [1.0, pytest.approx(0.5), pytest.approx(0.5), None, None]


@pytest.mark.parametrize("ahead", [1.0, 600.0, 10 * DAY, 30 * DAY, 4000 * DAY])
def test_the_future_counts_as_now(values: Values, ahead: float) -> None:
    """A memory from the future has recency 1: no more, no crash."""
    assert values("recency", [{"created_at": NOW + ahead}]) == [1.0]


def test_ages_are_fractional(values: Values) -> None:
    """One second and fifty-nine minutes are different ages."""
    second, hour = values("recency", [{"created_at": NOW - 1}, {"created_at": NOW - 3540}])
    assert second is not None
    assert hour is not None
    assert 1.0 > second > hour > 0.998


@given(st.lists(st.one_of(st.none(), st.floats(-100 * DAY, 100 * DAY)), min_size=1, max_size=6), st.floats(0.5, 400))
@many
def test_recency_is_its_formula(values: Values, ages: list[float | None], days: float) -> None:
    """clamp(1 - age/days, 0, 1), for any age and any number of days."""
    got = values(
        "recency",
        [{} if age is None else {"created_at": NOW - age} for age in ages],
        everything("recency", recency_days=days),
    )
    for age, value in zip(ages, got, strict=True):
        expected = None if age is None else min(max(1 - age / DAY / days, 0.0), 1.0)
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-6))


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)), st.integers(-12 * 60, 12 * 60))  # noqa: DTZ001 - given a zone below
@settings(max_examples=200, deadline=None)
def test_reading_a_time_inverts_writing_it(moment: datetime, minutes: int) -> None:
    """Any aware datetime and its ISO text are read as its own epoch seconds."""
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(aware) == pytest.approx(aware.timestamp(), abs=1e-6)
    assert parse_time(aware.isoformat()) == pytest.approx(aware.timestamp(), abs=1e-6)
    assert parse_time(date(moment.year, moment.month, moment.day)) == parse_time(moment.date().isoformat())


# --- importance ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3.0, 1.0), (-1, 0.0), (1e12, 1.0), (5, 1.0), (0.8, 0.8), ("0.8", 0.8), (" 0.5 ", 0.5), (0, 0.0), (1, 1.0),
        ("nan", None), ("inf", None), ("-Infinity", None), ("high", None), ("", None), (None, None), (True, None), ([0.5], None),
    ],
)  # fmt: skip
def test_importance_of_every_kind(values: Values, given: Any, expected: float | None) -> None:
    """Finite numbers, also as text, are clamped to [0, 1]; anything else is unknown. Never NaN in a score."""
    assert values("importance", [{"importance": given}]) == [expected]


def test_an_importance_that_is_no_number_is_warned_of_once(values: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning in a process, which names the type and not the value."""
    monkeypatch.setattr("memhybrid.signals.importance._warned", False)
    with pytest.warns(UserWarning, match="importance") as caught:
        values(
            "importance", [{"importance": "secret"}, {"importance": "inf"}, {"importance": True}, {"importance": 0.5}]
        )
    assert len(caught) == 1
    assert "secret" not in str(caught[0].message)


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 200)), min_size=1, max_size=8),
    st.floats(0.1, 1000),
)
@many
def test_importance_is_its_formula(values: Values, given: list[float | None], scale: float) -> None:
    """clamp(importance/scale, 0, 1), for any scale."""
    got = values("importance", [{"importance": v} for v in given], everything("importance", importance_scale=scale))
    for raw, value in zip(given, got, strict=True):
        assert value == (None if raw is None else pytest.approx(min(max(raw / scale, 0.0), 1.0), abs=1e-9))


@given(st.lists(st.one_of(st.none(), st.integers(60, 90)), min_size=1, max_size=12))
@many
def test_quantile_stretch_is_the_midrank(values: Values, given: list[int | None]) -> None:
    """Stretched importance is the share of the scope's known importances below it, equal ones counted half."""
    got = values("importance", [{"importance": v} for v in given], everything("importance", stretch="quantile"))
    known = [v for v in given if v is not None]
    for raw, value in zip(given, got, strict=True):
        if raw is None:
            assert value is None
        else:
            below, equal = sum(v < raw for v in known), sum(v == raw for v in known)
            assert value == pytest.approx((below + equal / 2) / len(known))


def test_a_narrow_band_uses_the_whole_range_when_stretched(values: Values) -> None:
    """60 to 90 of 100 spans 0.3 as it is and nearly 1 stretched, in the same order."""
    band = [{"importance": 60 + i} for i in range(31)]
    plain = values("importance", band, everything("importance", importance_scale=100))
    wide = values("importance", band, everything("importance", importance_scale=100, stretch="quantile"))
    assert max(plain) - min(plain) == pytest.approx(0.3)  # type: ignore[type-var, operator]
    assert max(wide) - min(wide) > 0.95  # type: ignore[type-var, operator]
    assert np.argsort(plain).tolist() == np.argsort(wide).tolist()


# --- type, range, usage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("identity", 1.0), ("preference", 0.9), ("relationship", 0.8), ("event", 0.7), ("fact", 0.6), ("other", 0.5),
        ("", 0.5), ("心情", 0.5), (" Identity ", 1.0), ("EVENT", 0.7), (None, None), (3, None), (True, None), (["fact"], None),
    ],
)  # fmt: skip
def test_the_type_table(values: Values, given: Any, expected: float | None) -> None:
    """The table, without regard to case or space around; other words are 0.5; no text is unknown."""
    assert values("type", [{"type": given}]) == [expected]


spans = st.fixed_dictionaries(
    {}, optional={"msg_id": st.integers(0, 20), "min_msg_id": st.integers(0, 20), "max_msg_id": st.integers(0, 20)}
)
bounds = st.one_of(st.none(), st.integers(-2, 22))


@given(st.lists(spans, min_size=1, max_size=8), bounds, bounds)
@many
def test_range_is_one_where_spans_meet(
    values: Values, metadata: list[dict[str, int]], low: int | None, high: int | None
) -> None:
    """1 where the memory's span, else its message, meets the requested range; 0 otherwise, and for all where none was asked for."""
    got = values("range", metadata, min_msg_id=low, max_msg_id=high)
    for memory, value in zip(metadata, got, strict=True):
        first = last = memory.get("msg_id")
        if "min_msg_id" in memory and "max_msg_id" in memory:
            first, last = memory["min_msg_id"], memory["max_msg_id"]
        asked = low is not None or high is not None
        met = (
            asked
            and first is not None
            and last is not None
            and (low is None or last >= low)
            and (high is None or first <= high)
        )
        assert value == float(met)


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(1, 500), st.floats(-5, 40))), min_size=1, max_size=8))
@many
def test_usage_is_its_formula(entries: list[tuple[int, float] | None]) -> None:
    """0.8·clamp(1 - days/14, 0, 1) + 0.2·min(1, log1p(count)/log1p(20)); a memory never returned has 0."""
    with make_memory(None) as memory:
        ids = memory.add([Memory(f"{i}", "text", {}, [1.0, 0.0]) for i in range(len(entries))])
        ledger = {i: UsageEntry(e[0], NOW - e[1] * DAY) for i, e in zip(ids, entries, strict=True) if e is not None}
        memory._store.ledger.set(ledger)
        got = values_in(memory, "usage", embedding=[1.0, 0.0])
    for identifier, entry in zip(ids, entries, strict=True):
        expected = 0.0
        if entry is not None:
            count, days = entry
            expected = 0.8 * min(max(1 - days / 14, 0), 1) + 0.2 * min(1, math.log1p(count) / math.log1p(20))
        assert got[identifier] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("count", "days", "expected"),
    [(0, None, 0.0), (20, 0.0, 1.0), (20, 14.0, 0.2), (2000, 400.0, 0.2), (0, 7.0, 0.4), (-3, None, 0)],
)
def test_usage_is_bounded(count: int, days: float | None, expected: float) -> None:
    """Two hundred returns count no more than twenty, and two weeks without one leave at most 0.2."""
    assert usage_value(count, days) == pytest.approx(expected)


# --- lexical ---------------------------------------------------------------------------------------------------------

WORDS = ["apple", "pear", "plum", "fig", "kiwi", "lime"]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=6),
    st.lists(st.sampled_from([*WORDS, "quince"]), min_size=1, max_size=6),
)
@many
def test_lexical_is_the_idf_weighted_share_of_distinct_terms(texts: list[list[str]], query: list[str]) -> None:
    """Σ idf of the query's distinct terms that the memory has / Σ idf of all, also of those that no memory has."""
    with make_memory(None) as memory:
        memory.add([Memory(f"{i}", " ".join(text), {}, [1.0, 0.0]) for i, text in enumerate(texts)])
        got = values_in(memory, "lexical", " ".join(query), embedding=[1.0, 0.0])
    n = len(texts)

    def idf(word: str) -> float:
        df = sum(word in text for text in texts)
        return math.log(1 + (n - df + 0.5) / (df + 0.5))

    total = sum(idf(w) for w in set(query))
    for i, text in enumerate(texts):
        assert got[f"{i}"] == pytest.approx(sum(idf(w) for w in set(query) & set(text)) / total, abs=1e-6)


def test_a_query_without_terms_has_no_lexical_match() -> None:
    """Punctuation alone matches nothing; it is 0, not unknown."""
    with make_memory(None) as memory:
        memory.add(["apple pie"])
        assert list(values_in(memory, "lexical", "?!").values()) == [0.0]


# --- mapped names, order at the top, signals of one's own ------------------------------------------------------------


def test_a_users_own_names_serve(values: Values) -> None:
    """FieldMap says which metadata key plays which role; the usual key then means nothing."""
    fields = FieldMap(importance="priority", updated_at="last_seen", type="kind", msg_id="turn")
    metadata = [
        {
            "priority": 0.25,
            "importance": 1.0,
            "last_seen": NOW - 15 * DAY,
            "updated_at": NOW,
            "kind": "event",
            "turn": 7,
        },
        {"importance": 1.0, "type": "identity", "msg_id": 7},
    ]
    assert values("importance", metadata, everything("importance", fields=fields)) == [0.25, None]
    assert values("recency", metadata, everything("recency", fields=fields)) == [pytest.approx(0.5), None]
    assert values("type", metadata, everything("type", fields=fields)) == [0.7, None]
    assert values("range", metadata, everything("range", fields=fields), min_msg_id=7, max_msg_id=7) == [1.0, 0.0]


def test_clamped_scores_keep_a_total_order() -> None:
    """Memories whose scores all reach the cap come by updated_at, then id, descending; never by arrival."""
    profile = Profile.tipsy().replace(signals={"semantic": 5.0})
    with make_memory(None) as memory:
        rows = [("b", NOW - 5), ("d", NOW - 9), ("a", NOW - 5), ("c", NOW - 1)]
        memory.add([Memory(i, "text", {"updated_at": t}, [1.0, 0.0]) for i, t in rows])
        result = memory.search("text", 4, profile=profile, embedding=[1.0, 0.0], now=NOW, record_usage=False)
    assert {hit.score for hit in result} == {1.0}
    assert result.ids == ["c", "b", "a", "d"]


class Brevity:
    """A signal of one's own: the shorter, the better; unknown for an empty text."""

    name = "brevity"
    query_dependent = False

    def values(self, context: SignalContext) -> Float64:
        lengths = np.array([len(context.view.text(int(row))) for row in context.rows], dtype=float)
        return np.where(lengths > 0, 1 / np.maximum(lengths, 1), np.nan)


def test_a_new_signal_is_one_class_and_one_line() -> None:
    """`with_signal` puts a class into a profile; its values, weight and missing ones show in the result."""
    profile = Profile.semantic().with_signal(Brevity(), 0.4)
    with make_memory(None) as memory:
        memory.add([Memory("a-long", "a longer text", {}, [1.0, 1.0]), Memory("short", "ab", {}, [1.0, 1.0])])
        result = memory.search("ab", 2, profile=profile, embedding=[1.0, 0.0])
    assert result.ids == ["short", "a-long"]
    assert result[0].signals["brevity"] == 0.5
    assert result[0].details["brevity"].weight == 0.4
    assert result.trace.weights == {"semantic": 1.0, "brevity": 0.4}


class Broken(Brevity):
    """Gives one number too many, infinities, or raises."""

    def __init__(self, make: Callable[[SignalContext], Any]) -> None:
        self.make = make

    def values(self, context: SignalContext) -> Float64:
        return self.make(context)


def test_a_signal_that_fails_is_left_out_and_one_out_of_range_is_clamped() -> None:
    """A wrong shape or an exception degrades; values beyond [0, 1] are clamped and infinite ones are unknown: no NaN in a score."""

    def bad(context: SignalContext) -> Any:
        raise ZeroDivisionError

    with make_memory(None) as memory:
        memory.add([Memory("a", "a", {}, [1.0, 0.0]), Memory("b", "b", {}, [1.0, 0.0])])
        for make, expected, degraded in [
            (bad, [None, None], True),
            (lambda c: np.ones(len(c.rows) + 1), [None, None], True),
            (lambda c: np.array([7.0, -7.0]), [1.0, 0.0], False),
            (lambda c: np.array([np.inf, np.nan]), [None, None], False),
        ]:
            profile = Profile.semantic().with_signal(Broken(make), 0.4)
            result = memory.search("a", 2, profile=profile, embedding=[1.0, 0.0])
            assert [h.signals["brevity"] for h in sorted(result, key=lambda h: h.memory.id or "")] == expected
            assert bool(result.trace.degraded) is degraded
            assert all(math.isfinite(h.score) for h in result)


# --- the guards of profiles ------------------------------------------------------------------------------------------


def test_the_shipped_profile_has_the_weights_of_the_seed_and_no_warning() -> None:
    """tipsy's weights add up to 1.05, 1.30 to 1 for those that follow the request, and nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profile = Profile.tipsy()
    assert sum(profile.signals.values()) == pytest.approx(1.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"usage": 0.06}, "usage weighs 0.06"), ({"importance": 0.32}, "hardly follow the query.*'importance': 0.32")],
)
def test_weights_near_the_trap_warn_by_name(change: dict[str, float], message: str) -> None:
    """Usage above 0.05, or query-dependent weights below 1.2 times the others, warn and name the weights."""
    tipsy = Profile.tipsy()
    with pytest.warns(UserWarning, match=message):
        tipsy.replace(signals={**tipsy.signals, **change})


def test_weights_inside_the_trap_are_refused_unless_meant() -> None:
    """At or below 1.0 times the profile is refused by name; `allow_query_independent` is the way to say that it is meant."""
    tipsy = Profile.tipsy()
    with pytest.raises(ConfigError, match=r"'usage': 0\.6.*allow_query_independent"):
        tipsy.replace(signals={**tipsy.signals, "usage": 0.6})
    with pytest.raises(ConfigError):
        Profile(signals={"semantic": 0.5, "importance": 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meant = tipsy.replace(signals={**tipsy.signals, "usage": 0.6}, allow_query_independent=True)
        assert Profile.from_json(meant.to_json()) == meant
