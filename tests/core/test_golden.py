"""The golden tables of both systems, every case to 1e-9."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memhybrid import fusion
from memhybrid.signals.bm25 import sigmoid
from memhybrid.signals.entity import MAX_QUERY_ENTITIES, MIN_SIMILARITY, boost
from memhybrid.signals.usage import usage_value

GOLDEN = Path(__file__).parents[1] / "golden"


def cases(name: str) -> list[Any]:
    """One case a line."""
    return [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]


@pytest.mark.parametrize("case", cases("additive.jsonl"))
def test_additive_fusion(case: dict[str, Any]) -> None:
    """Mem0's ranking, its parts and its divisor."""
    given, expected = case["input"], case["expected"]
    ids = list(given["semantic"])
    semantic = np.array([given["semantic"][i] for i in ids], dtype=float)
    raw = given["bm25_raw"]
    hits = raw or {}
    bm25 = sigmoid(np.array([hits.get(i, np.nan) for i in ids], dtype=float), given["query_terms"])
    boosts: dict[str, float] = {}
    for entity in given["entities"]:
        if entity["query_entity"] < MAX_QUERY_ENTITIES and entity["similarity"] >= MIN_SIMILARITY:
            for linked in entity["linked_ids"]:
                boosts[linked] = max(boosts.get(linked, 0.0), boost(entity["similarity"], len(entity["linked_ids"])))
    entity_part = np.array([boosts.get(i, 0.0) for i in ids])
    fused = fusion.additive(
        semantic, bm25, entity_part, keyword_hit=any(v > 0 for v in hits.values()), boosted=bool(boosts)
    )
    assert fused.max_possible == expected["max_possible"]
    kept = [i for i in range(len(ids)) if semantic[i] >= given["threshold"]]
    ranking = sorted(kept, key=lambda i: (-fused.scores[i], ids[i]))[: given["top_k"]]
    assert [ids[i] for i in ranking] == [row["id"] for row in expected["ranking"]]
    for i, row in zip(ranking, expected["ranking"], strict=True):
        assert fused.scores[i] == pytest.approx(row["score"], abs=1e-9)
        assert bm25[i] == pytest.approx(row["bm25"], abs=1e-9)
        assert entity_part[i] == pytest.approx(row["entity"], abs=1e-9)


@pytest.mark.parametrize("case", cases("weighted.jsonl"))
def test_weighted_fusion(case: dict[str, Any]) -> None:
    """tipsy's base, adjustments and score, with usage from its inputs."""
    from memhybrid import Profile

    given, expected = case["input"], case["expected"]
    assert usage_value(given["retrieve_count"], given["days_since_last_retrieved"]) == pytest.approx(
        given["usage"], abs=1e-9
    )
    weights = Profile.tipsy().signals
    values = {name: np.array([given[name]], dtype=float) for name in weights}
    extra = fusion.tipsy_adjustments(
        [given["memory_type"]], values["lexical"], values["importance"], query_is_identity=given["query_is_identity"]
    )
    fused = fusion.weighted(values, weights, extra)
    assert sum(c[0] for c in fused.contributions.values()) == pytest.approx(expected["base"], abs=1e-9)
    assert sum(a[0] for a in extra.values()) == pytest.approx(expected["adjustment"], abs=1e-9)
    assert fused.scores[0] == pytest.approx(expected["score"], abs=1e-9)
