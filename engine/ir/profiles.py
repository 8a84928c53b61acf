"""Entailment profiles under which rule documents import RDF graphs (RIF RDF and OWL Compatibility, section 5.1.1)."""

from __future__ import annotations

_ENTAILMENT = "http://www.w3.org/ns/entailment/"

SIMPLE, RDF_PROFILE, RDFS_PROFILE = f"{_ENTAILMENT}Simple", f"{_ENTAILMENT}RDF", f"{_ENTAILMENT}RDFS"
OWL_RL = "http://www.w3.org/ns/owl-profile/RL"
OWL_RDF_BASED, OWL_DIRECT = f"{_ENTAILMENT}OWL-RDF-Based", f"{_ENTAILMENT}OWL-Direct"
STREAM = "https://w3id.org/rsp/vocals#RDFStream"
"""The import is an RDF stream (the class of the W3C RSP group's vocabulary VoCaLS), not a graph."""

RANKS = {SIMPLE: 0, RDF_PROFILE: 1, RDFS_PROFILE: 2, OWL_RL: 3, OWL_RDF_BASED: 3}
"""Profiles by strength: the strongest one of a document holds for all its graphs. OWL-RDF-Based is taken as far as OWL 2 RL's rules go."""
