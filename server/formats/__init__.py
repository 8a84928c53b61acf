"""RDF and result formats: bodies in, answers out. Untrusted RDF is read by pyoxigraph only."""
