"""The service over HTTP: what it answers, to whom, within which limits."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memhybrid import HybridMemory, Memory
from memhybrid.concurrency import in_thread
from memhybrid.errors import ConfigError, StoreError
from memhybrid.service.auth import Caller, Keys, load_config
from memhybrid.service.limits import within
from memhybrid.service.problems import ProblemError
from memhybrid.service.serving import check_access, is_loopback
from tests.conftest import make_memory
from tests.service.conftest import BACKEND, CONFIG, READER, U1, U2, Client, httpx, running


def problem(answer: Any, status: int) -> dict[str, Any]:
    """The answer as problem details with this status; nothing of the inside shows."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    data = answer.json()
    assert data["status"] == status
    assert data["title"]
    for inside in ("Traceback", ".py", "site-packages", "sqlite"):
        assert inside not in answer.text
    return data


# --- what it answers -------------------------------------------------------------------------------------------------


def test_stored_memories_are_found_with_scores_signals_and_trace(u1: Client) -> None:
    """What was added comes back, best first, with every signal, and the trace of the search."""
    added = u1.add(
        {"id": "a", "text": "Daniel is a carpenter", "metadata": {"importance": 60, "type": "fact"}}, "rain in Bristol"
    )
    assert added.status_code == 201
    assert added.json()["ids"][0] == "a"
    answer = u1.retrieve(query="carpenter", limit=2)
    assert answer.status_code == 200
    first = answer.json()["memories"][0]
    assert (first["id"], first["text"]) == ("a", "Daniel is a carpenter")
    assert first["metadata"] == {"importance": 60, "type": "fact", "user_id": "u1"}
    assert set(first["signals"]) == {"semantic", "lexical", "importance", "recency", "range", "type", "usage"}
    assert first["signals"]["recency"] is None
    assert 0 < first["score"] <= 1
    trace = answer.json()["trace"]
    assert trace["profile"] == "tipsy"
    assert trace["scope"] == {"user_id": "u1"}
    assert trace["candidates"] == {"semantic": 2, "importance": 2}


def test_every_parameter_of_the_seed_reaches_the_search(u1: Client, store: HybridMemory) -> None:
    """session_id, character_id, ranges, prefix_only, max_tokens, where, min_score and profile do what they do in the library."""
    notes = [
        {
            "id": f"n{i}",
            "text": f"note number {i}",
            "metadata": {"msg_id": i, "kind": "odd" if i % 2 else "even", "importance": i},
        }
        for i in range(5)
    ]
    u1.add(*notes, session_id="s1", character_id="c1")
    u1.add({"id": "elsewhere", "text": "note number 9"}, session_id="s2")

    def ids(**body: Any) -> list[str]:
        return [m["id"] for m in u1.retrieve(query="note", **body).json()["memories"]]

    assert set(ids(session_id="s1")) == {f"n{i}" for i in range(5)}
    assert ids(session_id="s2") == ["elsewhere"]
    assert ids(session_id="s2", character_id="c1") == []
    assert set(ids(max_msg_id=2, prefix_only=True)) == {"n0", "n1", "n2"}
    assert set(ids(where={"kind": "even"})) == {"n0", "n2", "n4"}
    assert len(ids(limit=2)) == 2
    assert len(ids(max_tokens=8)) == 2
    assert ids(min_score=1.0) == []
    assert u1.retrieve(query="note", profile="bm25").json()["trace"]["profile"] == "bm25"
    assert [m["id"] for m in u1.retrieve(min_msg_id=1, max_msg_id=2).json()["memories"]] == ["n2", "n1"]
    expected = store.scoped(user_id="u1").search("note number 3", 3, record_usage=False)
    assert [m["id"] for m in u1.retrieve(query="note number 3", limit=3).json()["memories"]] == expected.ids


def test_deleting_by_ids_by_filter_and_everything(u1: Client, store: HybridMemory) -> None:
    """Each way deletes what it names in the scope and says how many; nothing named is an error."""
    u1.add(*[{"id": f"d{i}", "text": "x", "metadata": {"n": i}} for i in range(5)])
    assert u1.delete(ids=["d0", "nobody"]).json() == {"deleted": 1}
    assert u1.delete(where={"n": {"$gte": 3}}).json() == {"deleted": 2}
    problem(u1.delete(), 422)
    problem(u1.delete(where={}), 422)
    assert store.scoped(user_id="u1").count() == 2
    assert u1.delete(all=True).json() == {"deleted": 2}


def test_health_and_readiness_need_no_key(base: str) -> None:
    """Alive and ready, without a word about what is stored."""
    for path in ("/healthz", "/readyz"):
        answer = httpx.get(base + path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_store_that_fails_is_not_ready_and_answers_503(
    base: str, u1: Client, store: HybridMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing store is a 503 without details, on every route; the process stays alive."""

    def broken(*_: Any, **__: Any) -> Any:
        raise StoreError("disk /secret/path is on fire")

    monkeypatch.setattr(store._syncer, "ensure_fresh", broken)
    for answer in (httpx.get(base + "/readyz"), u1.retrieve(query="x"), u1.add("x")):
        problem(answer, 503)
        assert "secret" not in answer.text
    assert httpx.get(base + "/healthz").status_code == 200


def test_a_mistake_of_ours_shows_no_trace(
    u1: Client, store: HybridMemory, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """An unexpected exception is a 500 in problem details; what it was is in the log alone."""

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret number")

    monkeypatch.setattr("memhybrid.memory.MemoryView.search", broken)
    with caplog.at_level(logging.ERROR, "memhybrid.service"):
        data = problem(u1.retrieve(query="x"), 500)
    assert "secret" not in json.dumps(data)
    assert "secret number" in caplog.text


def test_the_schema_describes_the_service(base: str) -> None:
    """OpenAPI has the routes, examples, problem responses and how to send a key."""
    schema = httpx.get(base + "/openapi.json").json()
    assert set(schema["paths"]) == {"/v1/memory/retrieve", "/v1/memories", "/healthz", "/readyz"}
    assert schema["components"]["schemas"]["RetrieveRequest"]["examples"]
    retrieve = schema["paths"]["/v1/memory/retrieve"]["post"]
    assert retrieve["security"] == [{"bearer": []}, {"apiKey": []}]
    assert "application/problem+json" in retrieve["responses"]["422"]["content"]
    assert httpx.get(base + "/docs").status_code == 200


# --- to whom ---------------------------------------------------------------------------------------------------------

ROUTES = [
    ("POST", "/v1/memory/retrieve", {"query": "x"}),
    ("POST", "/v1/memories", {"memories": [{"text": "x"}]}),
    ("DELETE", "/v1/memories", {"all": True}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Authorization": "Bearer"}, {"Authorization": "Bearer wrong-key-0123456789"}, {"Authorization": f"Basic {U1}"},
        {"Authorization": U1}, {"X-API-Key": ""}, {"X-API-Key": U1[:-1]}, {"X-API-Key": "schlüssel".encode()},
        {"Authorization": f"Bearer {CONFIG['keys'][0]['sha256']}"},
    ],
)  # fmt: skip
def test_without_a_key_there_is_no_service(base: str, method: str, path: str, body: Any, headers: Any) -> None:
    """No key, another scheme, part of a key, or the hash of one: 401 before the body is looked at."""
    answer = httpx.request(method, base + path, json=body, headers=headers)
    problem(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"
    problem(
        httpx.request(
            method, base + path, content=b"{no json", headers={**headers, "Content-Type": "application/json"}
        ),
        401,
    )


def test_both_headers_carry_a_key(base: str) -> None:
    """`Authorization: Bearer` and `X-API-Key` serve alike; hashed and plain keys too."""
    for headers in ({"Authorization": f"bearer {U1}"}, {"X-API-Key": U1}, {"X-API-Key": U2}):
        assert httpx.post(base + "/v1/memory/retrieve", json={"query": "x"}, headers=headers).status_code == 200


@pytest.mark.parametrize("other", ["u2", "nobody", 1])
def test_a_key_opens_its_own_scope_alone(u1: Client, u2: Client, other: Any) -> None:
    """Naming another user is 403, whether that user exists or not, with the same words; its own name is allowed."""
    u2.add({"id": "theirs", "text": "secret of u2"})
    answers = [
        u1.retrieve(user_id=other, query="secret"),
        u1.add("x", user_id=other),
        u1.add({"text": "x", "metadata": {"user_id": other}}),
        u1.delete(user_id=other, all=True),
    ]
    for answer in answers:
        assert problem(answer, 403)["detail"] == "the key does not open this user_id"
    assert u1.retrieve(user_id="u1", query="secret").status_code == 200


def test_nothing_of_others_is_seen_or_touched(u1: Client, u2: Client, store: HybridMemory) -> None:
    """Filters cannot reach another's memories, ids of others do not exist for deletes, and are refused for writes without saying whose."""
    u2.add({"id": "theirs", "text": "secret of u2"})
    u1.add("something else")
    for where in (
        {"user_id": "u2"},
        {"$or": [{"user_id": "u2"}, {"user_id": "u1"}]},
        {"$not": [{"user_id": "u1"}]},
        {"user_id": {"$ne": "u1"}},
    ):
        answer = u1.retrieve(query="secret of u2", where=where)
        assert "secret" not in json.dumps(answer.json()["memories"])
        u1.delete(where=where)
    assert u1.delete(ids=["theirs"]).json() == {"deleted": 0}
    taken = problem(u1.add({"id": "theirs", "text": "mine now"}), 409)
    assert "u2" not in json.dumps(taken)
    assert [m.text for m in store.scoped(user_id="u2").list()] == ["secret of u2"]


def test_a_reading_key_reads_and_leaves_no_usage(base: str, u1: Client, store: HybridMemory) -> None:
    """write: false: no adding, no deleting, and searches are not counted."""
    ids = u1.add("apple").json()["ids"]
    reader = Client(base, READER)
    assert [m["id"] for m in reader.retrieve(query="apple").json()["memories"]] == ids
    assert store.usage(ids) == {}
    problem(reader.add("x"), 403)
    problem(reader.delete(all=True), 403)
    u1.retrieve(query="apple")
    assert store.usage(ids)[ids[0]].count == 1


def test_a_key_without_a_scope_has_to_name_one(base: str, u1: Client) -> None:
    """A backend's key speaks for any user, but says for which."""
    backend = Client(base, BACKEND)
    problem(backend.retrieve(query="x"), 422)
    assert backend.add("for u3", user_id="u3").status_code == 201
    assert len(backend.retrieve(query="for", user_id="u3").json()["memories"]) == 1
    assert backend.retrieve(query="for", user_id="u1").json()["memories"] == []
    problem(backend.add({"text": "x", "metadata": {"user_id": "u2"}}, user_id="u3"), 422)


def test_every_key_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known and an unknown key cost as many comparisons, each in constant time."""
    import hmac

    seen: list[int] = []
    original = hmac.compare_digest

    def counting(a: bytes, b: bytes) -> bool:
        seen.append(len(a))
        return original(a, b)

    monkeypatch.setattr("memhybrid.service.auth.hmac.compare_digest", counting)
    keys = Keys(load_config(CONFIG).keys)
    assert keys.caller(f"Bearer {U1}", None).scope == {"user_id": "u1"}
    with pytest.raises(ProblemError):
        keys.caller("Bearer unknown", None)
    assert seen == [32] * 8


def test_scopes_of_several_keys_bind_together() -> None:
    """A request may narrow further, not differ; 1, "1" and True are different values; what is required has to be there."""
    caller = Caller({"user_id": "u1", "team": 1})
    assert caller.bind({"session_id": "s", "user_id": None}, ("user_id",)) == {
        "user_id": "u1",
        "team": 1,
        "session_id": "s",
    }
    for other in ("1", True, 2):
        with pytest.raises(ProblemError) as caught:
            caller.bind({"team": other}, ())
        assert caught.value.status == 403
    with pytest.raises(ProblemError) as caught:
        Caller().bind({"user_id": None}, ("user_id",))
    assert caught.value.status == 422


@pytest.mark.parametrize(
    "config",
    [
        {}, {"keys": []}, {"keys": [{"key": "short", "scope": {}}]}, {"keys": [{"scope": {}}]}, {"keys": [{"key": "k" * 20}]},
        {"keys": [{"key": "k" * 20, "sha256": "0" * 64, "scope": {}}]}, {"keys": [{"sha256": "xyz", "scope": {}}]},
        {"keys": [{"key": "k" * 20, "scope": {"user_id": ""}}]}, {"keys": [{"key": "k" * 20, "scope": {"user_id": True}}]},
        {"keys": [{"key": "k" * 20, "scope": {}}] * 2}, {"keys": [{"key": "k" * 20, "scope": {}}], "limits": {"max_limit": 0}},
        {"keys": [{"key": "k" * 20, "scope": {}}], "limit": {}},
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused_without_showing_a_key(config: Any, tmp_path: Path) -> None:
    """Missing, short, double or ambiguous keys, and unknown fields, are errors; no key is in the message."""
    path = tmp_path / "service.json"
    path.write_text(json.dumps(config))
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert "k" * 20 not in str(caught.value)
    for bad in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(ConfigError):
            load_config(bad)


@pytest.mark.parametrize(
    ("host", "config", "no_auth", "message"),
    [
        ("127.0.0.1", None, False, "API keys are needed"),
        ("0.0.0.0", None, True, "loopback"),
        ("::", None, True, "loopback"),
        ("example.org", None, True, "loopback"),
        ("192.168.1.2", None, True, "loopback"),
        ("127.0.0.1", CONFIG, True, "not both"),
    ],
)
def test_it_does_not_start_open_to_others(host: str, config: Any, no_auth: bool, message: str) -> None:
    """Without keys it starts only when told so, and only on loopback."""
    with pytest.raises(ConfigError, match=message):
        check_access(host, config, no_auth=no_auth)


def test_loopback_addresses() -> None:
    """All of 127/8, ::1 and localhost are this machine; names that look like them are not."""
    assert all(is_loopback(h) for h in ("localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"))
    assert not any(
        is_loopback(h) for h in ("127.0.0.1.example.org", "localhost.example.org", "", "10.0.0.1", "0.0.0.0")
    )
    check_access("127.0.0.1", None, no_auth=True)
    check_access("0.0.0.0", CONFIG, no_auth=False)


def test_without_keys_only_loopback_names_are_answered() -> None:
    """A page in a browser that reaches 127.0.0.1 under a name of its own gets nothing; localhost gets everything."""
    with make_memory(None, profile="tipsy") as memory, running(memory, None) as address:
        memory.add(["apple"])
        assert httpx.post(address + "/v1/memory/retrieve", json={"query": "apple"}).json()["memories"]
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
            answer = httpx.post(address + "/v1/memory/retrieve", json={"query": "apple"}, headers={"Host": host})
            problem(answer, 421)
        as_form = httpx.post(
            address + "/v1/memory/retrieve", content=b'{"query":"apple"}', headers={"Content-Type": "text/plain"}
        )
        problem(as_form, 415)


# --- within which limits ---------------------------------------------------------------------------------------------


def test_the_size_of_a_request_is_limited(u1: Client) -> None:
    """A declared length over the limit, and a stream that grows over it, are 413 before they are parsed."""
    problem(u1.add("x" * 30_000), 413)

    def stream() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    problem(u1.http.post("/v1/memories", content=stream(), headers={"Content-Type": "application/json"}), 413)
    assert u1.add("x" * 10_000).status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {"limit": 0}, {"limit": 51}, {"limit": 10**30}, {"limit": True}, {"limit": "5"}, {"limit": 2.5}, {"query": None}, {"query": 5},
        {"query": "x" * 20_001, "limit": 1}, {"max_tokens": -1}, {"max_msg_id": 10**400}, {"min_score": 2}, {"profile": "/etc/passwd.json"},
        {"profile": "unknown"}, {"where": {"$where": "x"}}, {"where": {"a": {"$regex": "x"}}}, {"where": []}, {"user_id": ""},
        {"user_id": ["u1"]}, {"unknown": 1}, {"prefix_only": "yes"}, {"session_id": {}},
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_place(u1: Client, body: Any) -> None:
    """Wrong types, numbers out of range, unknown fields, operators and profiles are 422, too long ones 413; nothing is echoed."""
    answer = u1.retrieve(**{"query": "x", **body})
    problem(answer, 413 if len(json.dumps(body)) > 20_000 else 422)
    assert "passwd" not in answer.text


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b'{"query": "\\ud800"}', b'{"query": NaN}', b'{"min_score": NaN}',
        b'{"where": {"a": {"$gt": Infinity}}}', b'{"limit": 1' + b"0" * 5000 + b"}", b"[" * 5000,
        b'{"where": ' + b'{"$not": [' * 900 + b"]}" * 900 + b"}",
    ],
)  # fmt: skip
def test_any_bytes_get_an_answer(u1: Client, content: bytes) -> None:
    """Broken JSON, half surrogates, NaN, huge numbers and deep nesting are 4xx problems."""
    answer = u1.http.post("/v1/memory/retrieve", content=content, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500
    problem(answer, answer.status_code)


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": {"b": 1}},
        {"a": []},
        {"a": [1, "x"]},
        {"a": 10**30},
        {"": 1},
        {"chroma:document": 1},
        {"session_id": "other"},
    ],
)
def test_metadata_that_cannot_be_stored_is_refused_and_nothing_is_stored(
    u1: Client, store: HybridMemory, metadata: Any
) -> None:
    """One wrong memory refuses the whole call."""
    problem(u1.add("fine", {"text": "not", "metadata": metadata}, session_id="s1"), 422)
    assert store.scoped(user_id="u1").count() == 0


def test_numbers_of_memories_are_limited(u1: Client) -> None:
    """More than the configured number in one call, or none, is refused."""
    problem(u1.add(*["x"] * 6), 422)
    problem(u1.add(), 422)
    problem(u1.delete(ids=[]), 422)


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("GET", "/v1/memories", 405), ("PUT", "/v1/memory/retrieve", 405)]
)
def test_unknown_paths_and_methods_are_problems(u1: Client, method: str, path: str, status: int) -> None:
    """404 and 405 like everything else."""
    problem(u1.http.request(method, path), status)


def test_work_that_takes_too_long_is_a_504() -> None:
    """The answer comes at the limit; the work is left to end by itself."""
    release = threading.Event()
    limits = load_config({**CONFIG, "limits": {"timeout_s": 0.05}}).limits
    with pytest.raises(ProblemError) as caught:
        asyncio.run(within(limits, in_thread(release.wait, 60)))
    release.set()
    assert caught.value.status == 504


def test_the_event_loop_stays_free_and_too_many_at_once_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """While searches hang, health answers; beyond the number allowed, requests are 503 with Retry-After instead of a queue."""
    release, entered = threading.Event(), threading.Semaphore(0)

    def slow(self: Any, *_: Any, **__: Any) -> Any:
        entered.release()
        release.wait(60)
        raise StoreError("over")

    monkeypatch.setattr("memhybrid.memory.MemoryView.search", slow)
    config = {**CONFIG, "limits": {"max_concurrent": 2, "timeout_s": 60}}
    with make_memory(None, scope_key="user_id") as memory, running(memory, config) as address:
        waiting = [threading.Thread(target=Client(address, U1).retrieve, kwargs={"query": "x"}) for _ in range(2)]
        for thread in waiting:
            thread.start()
        assert entered.acquire(timeout=60)
        assert entered.acquire(timeout=60)
        assert httpx.get(address + "/healthz", timeout=60).status_code == 200
        answer = Client(address, U1).retrieve(query="x")
        problem(answer, 503)
        assert answer.headers["retry-after"] == "1"
        release.set()
        for thread in waiting:
            thread.join()


def test_a_body_that_never_comes_is_cut_off() -> None:
    """A client that stops in the middle of its body gets 408 instead of a connection for ever."""
    config = {**CONFIG, "limits": {"timeout_s": 0.2}}
    with make_memory(None, scope_key="user_id") as memory, running(memory, config) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as raw:
            head = (
                f"POST /v1/memories HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: {U1}\r\n"
                "Content-Length: 100\r\n\r\n{"
            )
            raw.sendall(head.encode())
            assert raw.recv(100).startswith(b"HTTP/1.1 408")


def test_a_store_without_tenants_can_be_served(tmp_path: Path) -> None:
    """Without scope keys the key's scope is an ordinary bound: nothing outside it is found, counted or deleted."""
    with make_memory(None, profile="tipsy") as memory, running(memory, CONFIG) as address:
        memory.add([Memory("m1", "apple", {"user_id": "u1"}), Memory("m2", "apple", {"user_id": "u2"})])
        client = Client(address, U1)
        assert [m["id"] for m in client.retrieve(query="apple").json()["memories"]] == ["m1"]
        assert client.delete(ids=["m2"]).json() == {"deleted": 0}
        assert client.delete(all=True).json() == {"deleted": 1}
        assert memory.count() == 1
