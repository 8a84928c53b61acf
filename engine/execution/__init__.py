"""What is evaluated, and how: compiled statements, due evaluations, what is kept of a query between them."""
