"""Graph problems on Spark: components, strong components, reachability, chains; each in one task, in rounds, or by GraphFrames.

Edges are rows ``x y`` of a graph that the columns `within` name (an evaluation time, an item), so that all graphs of a batch are one
disjoint union. A column ``hi`` is the end of an edge's interval.
"""
