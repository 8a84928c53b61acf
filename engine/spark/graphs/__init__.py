"""Closures on Spark, each in one task, in rounds, or by GraphFrames.

Edges are rows ``x y`` of a graph that the columns `within` name (an evaluation time, an item), so that all graphs of a batch are one
disjoint union.
"""
