"""The rules behind the entailment profiles of imported graphs; they stand beside the rules that import, for either sees what the other
derives (RIF RDF and OWL Compatibility, section 9: embeddings of combinations)."""

from __future__ import annotations

from engine.ir.profiles import OWL_RDF_BASED, OWL_RL, RDF_PROFILE, RDFS_PROFILE, SIMPLE
from engine.ir.rules import RuleSet
from engine.rewrite.owl2rl import OWL2RL, RDFS
from engine.rewrite.rule_text import rule_table

# rdfD2 of RDF 1.1 Semantics section 8.1.1; rdfD1 gives blank nodes to literals, which no rule can ask for.
_RDF = RuleSet("rdf", tuple(rule for rules in rule_table("rdfD2  ?x ?p ?y => ?p a rdf:Property\n", {}).values() for rule in rules))
# With rdfD2 above rdfs6 would put every property in use below itself, at each instant.
_RDFS = RuleSet("rdfs", tuple(rule for rule in (*_RDF.rules, *RDFS.rules) if rule.name != "rdfs6"))

RULES_OF: dict[str, RuleSet] = {
    SIMPLE: RuleSet("simple", ()), RDF_PROFILE: _RDF, RDFS_PROFILE: _RDFS,
    OWL_RL: OWL2RL, OWL_RDF_BASED: OWL2RL,
}
"""The rules by profile."""
