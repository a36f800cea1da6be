from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from memhybrid.embedders import HashEmbedder
from memhybrid.errors import ConfigError, InputError
from memhybrid.evaluate import metrics, run
from memhybrid.evaluate.datasets import Dataset, load_dataset
from memhybrid.evaluate.pools import Pools, collect
from memhybrid.evaluate.tune import folds_of, keyword_profiles, tune
from memhybrid.memory import HybridMemory
from memhybrid.profiles import Profile
from tests.evaluate.sets import write_set

BASE = Profile.balanced()


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, HybridMemory, Pools]]:
    """Three users with more memories than are kept of a pool."""
    data = load_dataset(write_set(tmp_path_factory.mktemp("tune"), users=3, memories=90, queries=20))
    with run.build(data, embedder=HashEmbedder(64), analyzer="fast") as memory:
        yield data, memory, collect(memory, data, BASE, keyword_profiles(BASE))


@pytest.mark.parametrize(
    "profile",
    [
        BASE,
        BASE.replace(context=False),
        BASE.replace(bm25_k1=1.2, bm25_b=0.75, bm25_half=4.0),
        BASE.replace(signals={**BASE.signals, "semantic_covered": 0.3, "late": 0.0}),
    ],
)
def test_pools_judge_a_profile_as_a_search_would(
    material: tuple[Dataset, HybridMemory, Pools], profile: Profile
) -> None:
    """nDCG@10 of every query from the pools is that of real searches."""
    data, memory, pools = material
    system = run.MemorySystem(memory, profile, scoped=data.scoped)
    rows = metrics.per_query({q.id: system.rank(q, 10) for q in data.queries}, {q.id: q.relevant for q in data.queries})
    expected = np.array([rows[q.id]["ndcg@10"] for q in data.queries])
    assert np.abs(pools.ndcg(profile) - expected).max() < 1e-9


def test_a_profile_that_is_already_good_is_left_alone(material: tuple[Dataset, HybridMemory, Pools]) -> None:
    """Where nothing gains on held-out folds there is no recommendation, twice the same."""
    data, _, pools = material
    noise = replace(pools, grade=np.random.default_rng(2).permutation(pools.grade))
    first, second = tune(noise, data.queries, BASE), tune(noise, data.queries, BASE)
    assert not first.recommended
    assert first == second


def test_a_bad_profile_is_mended_and_the_gain_is_held_out(material: tuple[Dataset, HybridMemory, Pools]) -> None:
    """Where the keywords carry the answers and their weight is nearly nothing, tuning raises it."""
    data, memory, _ = material
    bad = BASE.replace(name="bad", signals={"semantic_covered": 0.9, "bm25_calibrated": 0.05}, context=True)
    pools = collect(memory, data, bad, keyword_profiles(bad))
    broken = replace(pools, values={**pools.values, "semantic_covered": 1.0 - pools.values["semantic_covered"]})
    found = tune(broken, data.queries, bad)
    assert found.recommended
    assert found.low > 0
    assert found.profile.signals["semantic_covered"] < 0.9
    assert sum(fold.queries for fold in found.folds) == len(data.queries)


def test_folds_hold_out_whole_users(material: tuple[Dataset, HybridMemory, Pools]) -> None:
    """No user's questions are on both sides; without users questions are drawn."""
    queries = material[0].queries
    folds = folds_of(queries)
    assert sorted(np.concatenate(list(folds.values())).tolist()) == list(range(len(queries)))
    assert [len({queries[i].user for i in held}) for held in folds.values()] == [1, 1, 1]
    assert len(folds_of([replace(q, user=None) for q in queries])) == 5


def test_what_cannot_be_fitted_is_refused(material: tuple[Dataset, HybridMemory, Pools]) -> None:
    """Too few questions, and profiles with another kind of fusion."""
    data, memory, pools = material
    with pytest.raises(InputError, match="too few"):
        tune(pools, data.queries[:5], BASE)
    with pytest.raises(ConfigError, match="renormalised"):
        collect(memory, data, Profile.mem0(), [])
