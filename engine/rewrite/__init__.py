"""IR -> IR: the passes that rules and the query's shape go through, in order.

A pass is ``Statement, Context -> Statement``, one file each; EXPLAIN names them.
"""

from engine.rewrite import unfold
from engine.rewrite.context import Context

PASSES = (unfold.unfold,)

__all__ = ["PASSES", "Context"]
