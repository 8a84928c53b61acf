"""Recursive rules over windows: facts expire, come again, and are derived in several ways, and every treatment gives at each T what the
reference evaluator finds when it begins anew.

`make test-soak` takes two dozen random scenarios, `make test-long` some hundreds. Each goes through the plan of the executor `local` run in
this process, by both strategies and cut into batches, which is quick enough for Hypothesis to shrink a failure; then all of them run on
Spark, together in one log for each treatment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.execution.own_process import own_process
from grammar import parse
from tests import sparks
from tests.bags import same_bag
from tests.case_files import Answers
from tests.differential.recursion import HEAD, LEFT, NODES, ONTOLOGIES, QUERY, RULES, Scenario, make_program, make_scenario
from tests.merged import SPACE, merge, split
from tests.treatments import TREATMENTS, reference

MAKE: dict[str, Callable[[Random], Scenario]] = {
    "rules": lambda random: make_scenario(random, RULES, 10), "ontologies": lambda random: make_scenario(random, ONTOLOGIES, 6),
    "programs": lambda random: make_program(random, RULES, 6)}
FEW, MANY = {"rules": 12, "ontologies": 4, "programs": 6}, {"rules": 400, "ontologies": 100, "programs": 200}
ON_SQL = 5      # one in so many runs as jobs of its own
SPARK = [treatment for treatment in TREATMENTS if treatment.spark]


def generated(counts: dict[str, int]) -> list[Scenario]:
    """So many scenarios of each kind, on which the plan in this process agrees with the reference evaluator."""
    found: list[Scenario] = []
    for kind, count in counts.items():
        @settings(max_examples=count)
        @given(st.randoms(use_true_random=False), st.sampled_from(("recompute", "incremental")), st.sampled_from((1, 3)), st.booleans())
        def agree(random: Random, strategy: str, batches: int, resumed: bool) -> None:
            scenario = MAKE[kind](random)
            with own_process(1) as tasks:
                pumped = sparks.pumped(scenario.records(), parse, strategy=strategy, batches=batches, resumed=resumed, tasks=tasks)
            compare(scenario, right(scenario), sparks.answers(pumped, scenario.streams_of_results), strategy)
            found.append(scenario)
        agree()
    return [replace(scenario, name=f"{number}: {scenario.name}") for number, scenario in enumerate(found)]


def right(scenario: Scenario, shuffle: int | None = None) -> Answers:
    """What the reference evaluator logs."""
    return reference(scenario.records(shuffle))


def compare(scenario: Scenario, expected: Answers, found: Answers, way: str) -> None:
    """The same evaluation times with the same bags of rows."""
    for name in scenario.streams_of_results:
        assert [at for at, _ in expected[name]] == [at for at, _ in found[name]], f"{scenario!r}\n{way}, {name}"
        for (at, bag), (_, other) in zip(expected[name], found[name]):
            assert same_bag(bag, other), f"{scenario!r}\n{way}, {name}\nat {at}: {bag}\nbut {other}"


def on_spark(scenarios: Sequence[Scenario]) -> None:
    """All scenarios under every treatment; those that run a job for each plan take some of them."""
    expected = {scenario.name: right(scenario) for scenario in scenarios}
    for treatment in SPARK:
        chosen = scenarios[::ON_SQL] if treatment.name.startswith("sql") else scenarios
        found = split(treatment.run(merge(chosen, treatment.shuffle)), chosen)
        for scenario in chosen:
            shuffled = treatment.shuffle is not None and scenario.change is not None    # what is due when the change comes is another
            logged = right(scenario, treatment.shuffle) if shuffled else expected[scenario.name]
            compare(scenario, logged, found[scenario.name], treatment.name)


@pytest.mark.soak
@pytest.mark.spark
def test_recursion_under_windows() -> None:
    scenarios = generated(FEW)
    on_spark(scenarios)
    answers = [bag for scenario in scenarios for _, bag in right(scenario)[QUERY]]
    assert sum(map(bool, answers)) > len(answers) / 3


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_much_recursion_under_windows() -> None:
    on_spark(generated(MANY))


def test_the_strategies_are_those_of_the_treatments() -> None:
    names = [treatment.name for treatment in SPARK]
    assert {"incremental", "recompute"} <= {word for name in names for word in name.replace(",", "").split()}


def test_what_is_not_derived_is_missed() -> None:
    chain = tuple((n * 500, ((NODES[n], f"<{SPACE}edge>", NODES[n + 1]),)) for n in range(4))
    query = f"{HEAD}REGISTER QUERY q AS SELECT * FROM STREAM :s [RANGE 3s STEP 1s] USING RULES mine WHERE {{ :a :reaches ?y }}"
    whole = Scenario("chain", RULES["transitive closure"], query, (), chain, None)
    base = LEFT[:LEFT.index("Forall ?x ?y ?z")]
    part = replace(whole, program=replace(whole.program, rules=(base,)))
    compare(whole, right(whole), right(whole), "as it is")
    assert [len(bag) for _, bag in right(whole)[QUERY]] == [2, 4, 4, 0]
    with pytest.raises(AssertionError, match="without recursion"):
        compare(whole, right(whole), right(part), "without recursion")
