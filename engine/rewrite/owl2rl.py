"""The rules of OWL 2 RL/RDF (OWL 2 Profiles, second edition, section 4.3, Tables 4 to 9) and those of RDFS, as tables by name.

Three liberties are taken with the wording, none with what follows:

- A rule about lists names what it wants of a list in one atom: ``list-member(l m)``, ``list-pair(l m1 m2)`` with m1 before m2,
  ``list-types(l y)``: y has every member as a type, ``list-path(l u v)``: the members lead from u to v as a chain of properties,
  ``list-agree(l x y)``: x and y share a value of every member. LISTS says so by recursion along rdf:rest, for lists that come
  with the data; partial evaluation (partial.py) writes one rule per length of list instead.
- What makes equal compares different terms only, and eq-rep-* replaces by another term: eq-ref says the rest.
- dt-diff stands together with the one rule that asks for it, eq-diff1: two literals that are made equal must have one value. dt-eq
  finds equal values by their canonical literal.

The rules behind the entailment profiles of imported graphs stand beside the rules that import, for either sees what the other derives (RIF
RDF and OWL Compatibility, section 9: embeddings of combinations).
"""

from engine.ir.rules import OWL_RDF_BASED, OWL_RL, RDF_PROFILE, RDFS_PROFILE, SIMPLE, Rule, RuleSet
from engine.ir.terms import XSD
from engine.rewrite.rule_text import iri, rule_table

DATATYPES = tuple(iri(name) for name in (
    "rdf:PlainLiteral", "rdf:XMLLiteral", "rdfs:Literal", *(f"xsd:{local}" for local in (
        "decimal", "integer", "nonNegativeInteger", "nonPositiveInteger", "positiveInteger", "negativeInteger", "long", "int",
        "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "float", "double", "string",
        "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN", "boolean", "hexBinary", "base64Binary", "anyURI",
        "dateTime", "dateTimeStamp"))))
"""The datatypes of OWL 2 RL (section 4.2)."""

ANNOTATION_PROPERTIES = tuple(iri(name) for name in (
    "rdfs:label", "rdfs:comment", "rdfs:seeAlso", "rdfs:isDefinedBy", "deprecated", "versionInfo", "priorVersion",
    "backwardCompatibleWith", "incompatibleWith"))

_INTEGERS = ("nonNegativeInteger", "integer", "int", "long", "short", "byte", "decimal", "unsignedInt", "unsignedLong",
             "unsignedShort", "unsignedByte")


def _cardinality(value: int, types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f'"{value}"^^<{XSD}{name}>' for name in types)


TABLES = {"DATATYPES": DATATYPES, "ANNOTATIONS": ANNOTATION_PROPERTIES, "ZERO": _cardinality(0, (*_INTEGERS, "nonPositiveInteger")),
          "ONE": _cardinality(1, (*_INTEGERS, "positiveInteger"))}

EQUALITY = """
eq-ref    ?s ?p ?o => ?s sameAs ?s ; ?p sameAs ?p ; ?o sameAs ?o
eq-sym    ?x sameAs ?y => ?y sameAs ?x
eq-trans  ?x sameAs ?y, ?y sameAs ?z => ?x sameAs ?z
eq-rep-s  ?s sameAs ?t, ?s != ?t, ?s ?p ?o => ?t ?p ?o
eq-rep-p  ?p sameAs ?q, ?p != ?q, ?s ?p ?o => ?s ?q ?o
eq-rep-o  ?o sameAs ?t, ?o != ?t, ?s ?p ?o => ?s ?p ?t
eq-diff1  ?x sameAs ?y, ?x differentFrom ?y => false
eq-diff2  ?x a AllDifferent, ?x members ?l, list-pair(?l ?y ?z), ?y sameAs ?z => false
eq-diff3  ?x a AllDifferent, ?x distinctMembers ?l, list-pair(?l ?y ?z), ?y sameAs ?z => false
"""

PROPERTIES = """
prp-ap    ?p in ANNOTATIONS => ?p a AnnotationProperty
prp-dom   ?p rdfs:domain ?c, ?x ?p ?y => ?x a ?c
prp-rng   ?p rdfs:range ?c, ?x ?p ?y => ?y a ?c
prp-fp    ?p a FunctionalProperty, ?x ?p ?y, ?x ?p ?z, ?y != ?z => ?y sameAs ?z
prp-ifp   ?p a InverseFunctionalProperty, ?x ?p ?z, ?y ?p ?z, ?x != ?y => ?x sameAs ?y
prp-irp   ?p a IrreflexiveProperty, ?x ?p ?x => false
prp-symp  ?p a SymmetricProperty, ?x ?p ?y => ?y ?p ?x
prp-asyp  ?p a AsymmetricProperty, ?x ?p ?y, ?y ?p ?x => false
prp-trp   ?p a TransitiveProperty, ?x ?p ?y, ?y ?p ?z => ?x ?p ?z
prp-spo1  ?p rdfs:subPropertyOf ?q, ?x ?p ?y => ?x ?q ?y
prp-spo2  ?p propertyChainAxiom ?l, list-path(?l ?u ?v) => ?u ?p ?v
prp-eqp1  ?p equivalentProperty ?q, ?x ?p ?y => ?x ?q ?y
prp-eqp2  ?p equivalentProperty ?q, ?x ?q ?y => ?x ?p ?y
prp-pdw   ?p propertyDisjointWith ?q, ?x ?p ?y, ?x ?q ?y => false
prp-adp   ?z a AllDisjointProperties, ?z members ?l, list-pair(?l ?p ?q), ?x ?p ?y, ?x ?q ?y => false
prp-inv1  ?p inverseOf ?q, ?x ?p ?y => ?y ?q ?x
prp-inv2  ?p inverseOf ?q, ?x ?q ?y => ?y ?p ?x
prp-key   ?c hasKey ?l, ?x a ?c, ?y a ?c, ?x != ?y, list-agree(?l ?x ?y) => ?x sameAs ?y
prp-npa1  ?n sourceIndividual ?x, ?n assertionProperty ?p, ?n targetIndividual ?y, ?x ?p ?y => false
prp-npa2  ?n sourceIndividual ?x, ?n assertionProperty ?p, ?n targetValue ?y, ?x ?p ?y => false
"""

CLASSES = """
cls-thing     => Thing a Class
cls-nothing1  => Nothing a Class
cls-nothing2  ?x a Nothing => false
cls-int1      ?c intersectionOf ?l, list-types(?l ?y) => ?y a ?c
cls-int2      ?c intersectionOf ?l, list-member(?l ?d), ?y a ?c => ?y a ?d
cls-uni       ?c unionOf ?l, list-member(?l ?d), ?y a ?d => ?y a ?c
cls-com       ?c complementOf ?d, ?x a ?c, ?x a ?d => false
cls-svf1      ?c someValuesFrom ?d, ?c onProperty ?p, ?u ?p ?v, ?v a ?d => ?u a ?c
cls-svf2      ?c someValuesFrom Thing, ?c onProperty ?p, ?u ?p ?v => ?u a ?c
cls-avf       ?c allValuesFrom ?d, ?c onProperty ?p, ?u a ?c, ?u ?p ?v => ?v a ?d
cls-hv1       ?c hasValue ?v, ?c onProperty ?p, ?u a ?c => ?u ?p ?v
cls-hv2       ?c hasValue ?v, ?c onProperty ?p, ?u ?p ?v => ?u a ?c
cls-maxc1     ?c maxCardinality ?n, ?n in ZERO, ?c onProperty ?p, ?u a ?c, ?u ?p ?y => false
cls-maxc2     ?c maxCardinality ?n, ?n in ONE, ?c onProperty ?p, ?u a ?c, ?u ?p ?y, ?u ?p ?z, ?y != ?z => ?y sameAs ?z
cls-maxqc1    ?c maxQualifiedCardinality ?n, ?n in ZERO, ?c onProperty ?p, ?c onClass ?d, ?u a ?c, ?u ?p ?y, ?y a ?d => false
cls-maxqc2    ?c maxQualifiedCardinality ?n, ?n in ZERO, ?c onProperty ?p, ?c onClass Thing, ?u a ?c, ?u ?p ?y => false
cls-maxqc3    ?c maxQualifiedCardinality ?n, ?n in ONE, ?c onProperty ?p, ?c onClass ?d, ?u a ?c, \
              ?u ?p ?y, ?y a ?d, ?u ?p ?z, ?z a ?d, ?y != ?z => ?y sameAs ?z
cls-maxqc4    ?c maxQualifiedCardinality ?n, ?n in ONE, ?c onProperty ?p, ?c onClass Thing, ?u a ?c, \
              ?u ?p ?y, ?u ?p ?z, ?y != ?z => ?y sameAs ?z
cls-oo        ?c oneOf ?l, list-member(?l ?y) => ?y a ?c
"""

CLASS_AXIOMS = """
cax-sco   ?c rdfs:subClassOf ?d, ?x a ?c => ?x a ?d
cax-eqc1  ?c equivalentClass ?d, ?x a ?c => ?x a ?d
cax-eqc2  ?c equivalentClass ?d, ?x a ?d => ?x a ?c
cax-dw    ?c disjointWith ?d, ?x a ?c, ?x a ?d => false
cax-adc   ?y a AllDisjointClasses, ?y members ?l, list-pair(?l ?c ?d), ?x a ?c, ?x a ?d => false
"""

LITERALS = """
dt-type1     ?d in DATATYPES => ?d a rdfs:Datatype
dt-type2     literal-value(?k ?x), ?d in DATATYPES, in-value-space(?x ?d) => ?x a ?d
dt-eq        ?s ?p ?x, literal ?x, ?k := value(?x) => literal-value(?k ?x)
dt-eq        literal-value(?k ?x), literal-value(?k ?y), ?x != ?y => ?x sameAs ?y
dt-diff      ?x sameAs ?y, literal ?x, literal ?y, value(?x) != value(?y) => false
dt-not-type  ?x a ?d, literal ?x, ?d in DATATYPES, not in-value-space(?x ?d) => false
"""

SCHEMA = """
scm-cls   ?c a Class => ?c rdfs:subClassOf ?c ; ?c equivalentClass ?c ; ?c rdfs:subClassOf Thing ; Nothing rdfs:subClassOf ?c
scm-sco   ?c rdfs:subClassOf ?d, ?d rdfs:subClassOf ?e => ?c rdfs:subClassOf ?e
scm-eqc1  ?c equivalentClass ?d => ?c rdfs:subClassOf ?d ; ?d rdfs:subClassOf ?c
scm-eqc2  ?c rdfs:subClassOf ?d, ?d rdfs:subClassOf ?c => ?c equivalentClass ?d
scm-op    ?p a ObjectProperty => ?p rdfs:subPropertyOf ?p ; ?p equivalentProperty ?p
scm-dp    ?p a DatatypeProperty => ?p rdfs:subPropertyOf ?p ; ?p equivalentProperty ?p
scm-spo   ?p rdfs:subPropertyOf ?q, ?q rdfs:subPropertyOf ?r => ?p rdfs:subPropertyOf ?r
scm-eqp1  ?p equivalentProperty ?q => ?p rdfs:subPropertyOf ?q ; ?q rdfs:subPropertyOf ?p
scm-eqp2  ?p rdfs:subPropertyOf ?q, ?q rdfs:subPropertyOf ?p => ?p equivalentProperty ?q
scm-dom1  ?p rdfs:domain ?c, ?c rdfs:subClassOf ?d => ?p rdfs:domain ?d
scm-dom2  ?q rdfs:domain ?c, ?p rdfs:subPropertyOf ?q => ?p rdfs:domain ?c
scm-rng1  ?p rdfs:range ?c, ?c rdfs:subClassOf ?d => ?p rdfs:range ?d
scm-rng2  ?q rdfs:range ?c, ?p rdfs:subPropertyOf ?q => ?p rdfs:range ?c
scm-hv    ?c hasValue ?i, ?c onProperty ?p, ?d hasValue ?i, ?d onProperty ?q, ?p rdfs:subPropertyOf ?q => ?c rdfs:subClassOf ?d
scm-svf1  ?c someValuesFrom ?y, ?c onProperty ?p, ?d someValuesFrom ?z, ?d onProperty ?p, ?y rdfs:subClassOf ?z \
          => ?c rdfs:subClassOf ?d
scm-svf2  ?c someValuesFrom ?y, ?c onProperty ?p, ?d someValuesFrom ?y, ?d onProperty ?q, ?p rdfs:subPropertyOf ?q \
          => ?c rdfs:subClassOf ?d
scm-avf1  ?c allValuesFrom ?y, ?c onProperty ?p, ?d allValuesFrom ?z, ?d onProperty ?p, ?y rdfs:subClassOf ?z \
          => ?c rdfs:subClassOf ?d
scm-avf2  ?c allValuesFrom ?y, ?c onProperty ?p, ?d allValuesFrom ?y, ?d onProperty ?q, ?p rdfs:subPropertyOf ?q \
          => ?d rdfs:subClassOf ?c
scm-int   ?c intersectionOf ?l, list-member(?l ?d) => ?c rdfs:subClassOf ?d
scm-uni   ?c unionOf ?l, list-member(?l ?d) => ?d rdfs:subClassOf ?c
"""

LISTS = """
list  ?l rdf:first ?m => list-member(?l ?m)
list  ?l rdf:rest ?k, list-member(?k ?m) => list-member(?l ?m)
list  ?l rdf:first ?m, ?l rdf:rest ?k, list-member(?k ?n) => list-pair(?l ?m ?n)
list  ?l rdf:rest ?k, list-pair(?k ?m ?n) => list-pair(?l ?m ?n)
list  ?l rdf:first ?c, ?l rdf:rest rdf:nil, ?y a ?c => list-types(?l ?y)
list  ?l rdf:first ?c, ?l rdf:rest ?k, list-types(?k ?y), ?y a ?c => list-types(?l ?y)
list  ?l rdf:first ?p, ?l rdf:rest rdf:nil, ?u ?p ?v => list-path(?l ?u ?v)
list  ?l rdf:first ?p, ?l rdf:rest ?k, list-path(?k ?w ?v), ?u ?p ?w => list-path(?l ?u ?v)
list  ?l rdf:first ?p, ?l rdf:rest rdf:nil, ?x ?p ?z, ?y ?p ?z, ?x != ?y => list-agree(?l ?x ?y)
list  ?l rdf:first ?p, ?l rdf:rest ?k, list-agree(?k ?x ?y), ?x ?p ?z, ?y ?p ?z => list-agree(?l ?x ?y)
"""

# What partial evaluation asks beside the W3C's rules: it gives literals the datatypes that the schema speaks of, and by this rule what
# is made equal to a literal has all of them.
LEMMAS = """
dt-type2+eq-rep-s  ?x sameAs ?r, ?x != ?r, literal ?x, ?d in DATATYPES, in-value-space(?x ?d) => ?r a ?d
"""

# rdfs2, 3, 5, 6, 7, 9, 10 and 11 of RDF 1.1 Semantics section 9.2.1; rdfs6 and rdfs10 for what the schema speaks of (what is a property
# or a class there, axiomatic triples say). The others (axiomatic triples, rdfs4, 8, 12, 13) add what no one asks a stream for. Chains
# of rules are written out, so that what they derive takes one step; a name tells which.
RDFS_RULES = """
rdfs2        ?p rdfs:domain ?c, ?x ?p ?y => ?x a ?c
rdfs3        ?p rdfs:range ?c, ?x ?p ?y, resource ?y => ?y a ?c
rdfs5        ?p rdfs:subPropertyOf ?q, ?q rdfs:subPropertyOf ?r => ?p rdfs:subPropertyOf ?r
rdfs6        ?p a rdf:Property => ?p rdfs:subPropertyOf ?p
rdfs6        ?p rdfs:subPropertyOf ?q => ?p rdfs:subPropertyOf ?p ; ?q rdfs:subPropertyOf ?q
rdfs6        ?p rdfs:domain ?c => ?p rdfs:subPropertyOf ?p
rdfs6        ?p rdfs:range ?c => ?p rdfs:subPropertyOf ?p
rdfs7        ?p rdfs:subPropertyOf ?q, ?x ?p ?y => ?x ?q ?y
rdfs9        ?c rdfs:subClassOf ?d, ?x a ?c => ?x a ?d
rdfs10       ?c a rdfs:Class => ?c rdfs:subClassOf ?c
rdfs10       ?c rdfs:subClassOf ?d => ?c rdfs:subClassOf ?c ; ?d rdfs:subClassOf ?d
rdfs10       ?p rdfs:domain ?c => ?c rdfs:subClassOf ?c
rdfs10       ?p rdfs:range ?c => ?c rdfs:subClassOf ?c
rdfs11       ?c rdfs:subClassOf ?d, ?d rdfs:subClassOf ?e => ?c rdfs:subClassOf ?e
rdfs7+rdfs9  ?p rdfs:subPropertyOf rdf:type, ?c rdfs:subClassOf ?d, ?x ?p ?c => ?x a ?d
rdfs7+rdfs2  ?p rdfs:subPropertyOf ?q, ?q rdfs:domain ?c, ?x ?p ?y => ?x a ?c
rdfs7+rdfs3  ?p rdfs:subPropertyOf ?q, ?q rdfs:range ?c, ?x ?p ?y, resource ?y => ?y a ?c
rdfs2+rdfs9  ?p rdfs:domain ?c, ?c rdfs:subClassOf ?d, ?x ?p ?y => ?x a ?d
rdfs3+rdfs9  ?p rdfs:range ?c, ?c rdfs:subClassOf ?d, ?x ?p ?y, resource ?y => ?y a ?d
rdfs7+rdfs2+rdfs9  ?p rdfs:subPropertyOf ?q, ?q rdfs:domain ?c, ?c rdfs:subClassOf ?d, ?x ?p ?y => ?x a ?d
rdfs7+rdfs3+rdfs9  ?p rdfs:subPropertyOf ?q, ?q rdfs:range ?c, ?c rdfs:subClassOf ?d, ?x ?p ?y, resource ?y => ?y a ?d
"""

W3C_TABLES: dict[int, str] = {4: EQUALITY, 5: PROPERTIES, 6: CLASSES, 7: CLASS_AXIOMS, 8: LITERALS, 9: SCHEMA}
"""The text of each of the W3C's tables, by its number."""

RULES: dict[str, tuple[Rule, ...]] = {name: rules for text in W3C_TABLES.values() for name, rules in rule_table(text, TABLES).items()}
"""The rules by the W3C's names; a name with several heads has several."""

OWL2RL = RuleSet("owl2rl", tuple(rule for rules in (
    *RULES.values(), *rule_table(LISTS, TABLES).values(), *rule_table(LEMMAS, TABLES).values()) for rule in rules))
"""All rules, for schemas that come with the data."""

RDFS = RuleSet("rdfs", tuple(rule for rules in rule_table(RDFS_RULES, TABLES).values() for rule in rules))
"""The RDFS rules, for schemas that come with the data."""

BUILT_IN: dict[str, RuleSet] = {rules.name: rules for rules in (OWL2RL, RDFS)}

# rdfD2 of RDF 1.1 Semantics section 8.1.1; rdfD1 gives blank nodes to literals, which no rule can ask for.
_RDF = RuleSet("rdf", tuple(rule for rules in rule_table("rdfD2  ?x ?p ?y => ?p a rdf:Property\n", {}).values() for rule in rules))
# With rdfD2 above rdfs6 would put every property in use below itself, at each instant.
_RDFS = RuleSet("rdfs", tuple(rule for rule in (*_RDF.rules, *RDFS.rules) if rule.name != "rdfs6"))

RULES_OF: dict[str, RuleSet] = {
    SIMPLE: RuleSet("simple", ()), RDF_PROFILE: _RDF, RDFS_PROFILE: _RDFS, OWL_RL: OWL2RL, OWL_RDF_BASED: OWL2RL}
"""The rules by profile."""
