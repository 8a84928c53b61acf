"""SPARQL's functions, operators and aggregates as SQL; `tables` says which runs how."""
