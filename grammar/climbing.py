"""Binary operators of SPARQL expressions by operator precedence (SPARQL 1.1 grammar, rules 110 to 117).

It stands in for the eight nested rules of the grammar, which would each be entered for every operand of a chain.
The longest token wins (section 19.8): what can be read as an IRI (``<?a&&?b>``) is no operator.
"""

from __future__ import annotations

import re
from typing import Any

from grammar.machine import Element, Machine
from grammar.run import FAILED, Function, Run
from grammar.scanner import IRI_REFERENCE
from grammar.tree import Node

_OPERATOR = re.compile(rf"\|\||&&|!=|(?!{IRI_REFERENCE})<=?|>=?|[=*/+-]|(?:NOT[ \t\r\n]+)?IN(?![A-Za-z0-9_:.-])", re.IGNORECASE)
_STRENGTH = {"||": 1, "&&": 2, "=": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "IN": 3, "NOT IN": 3, "+": 4, "-": 4, "*": 5,
             "/": 5}


def expression(operand: Any, operand_list: Any) -> Element:
    """The element of an expression over the grammar's UnaryExpression, with its ExpressionList for IN."""

    def compile_(machine: Machine) -> Function:
        return _climb(machine.compile(operand), machine.compile(operand_list))

    return Element(compile_, operand)


def _climb(operand: Function, operand_list: Function) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        operands: list[Any] = []
        operators: list[str] = []
        place = operand(run, place, operands)
        while place >= 0:
            start = run.skip(place)
            run.note(start, "an operator")
            found = _OPERATOR.match(run.text, start)
            operator = " ".join(found[0].upper().split()) if found else ""
            strength = _STRENGTH.get(operator, 0)
            while operators and _STRENGTH[operators[-1]] >= strength:
                if _STRENGTH[operators[-1]] == strength == 3:   # comparisons do not chain: what follows is not ours
                    found = None
                    strength = 0
                _reduce(operands, operators.pop())
            if found is None:
                out.append(operands[0])
                return place
            operators.append(operator)
            after = operand_list if operator.endswith("IN") else operand
            place = after(run, found.end(), operands)
        return FAILED

    return parse


def _reduce(operands: list[Any], operator: str) -> None:
    right = operands.pop()
    left = operands.pop()
    end = right[-1].end if isinstance(right, list) and right else getattr(right, "end", left.end)
    operands.append(Node("Binary", left.start, end, {"operator": operator, "left": left, "right": right}))
