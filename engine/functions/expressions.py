"""Evaluation of IR expressions on rows, by closures (SPARQL 1.1 sections 17.2 and 17.4.1).

`compile_term` and `compile_test` turn an expression once into a function of (row, context); `evaluate` and `test` do so behind a
small cache. A row maps names of variables to tokens; an absent variable is unbound.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from engine.functions import dates, library
from engine.functions.compare import HOLDS, compare_values, effective_boolean_value, equal
from engine.functions.context import Context, ExpressionError, Function, Row, row_key
from engine.functions.regexes import regex
from engine.functions.terms import boolean, decode, simple_text, text_of
from engine.ir.expressions import Aggregate, Call, Exists, Expression, operands
from engine.ir.terms import Constant, Variable
from engine.ir.windows import TIME_FUNCTIONS

__all__ = ["Context", "ExpressionError", "Row", "compile_term", "compile_test", "compile_truth", "evaluate", "test"]

Term = Callable[[Row, Context], str]
Test = Callable[[Row, Context], bool]


def evaluate(expression: Expression, row: Row, context: Context) -> str:
    """The value of an expression in a row. Raises ExpressionError where it has none (an error, or an unbound variable)."""
    return _cached(expression)[0](row, context)


def test(expression: Expression, row: Row, context: Context) -> bool:
    """Whether a filter lets the row pass: its effective boolean value, an error being false."""
    return _cached(expression)[1](row, context)


def compile_term(expression: Expression) -> Term:
    """A function of (row, context) that does what `evaluate` does."""
    return _Compiler().term(expression)


def compile_truth(expression: Expression) -> Test:
    """A function of (row, context) that gives the effective boolean value, or raises ExpressionError where there is none."""
    return _Compiler().truth(expression)


def compile_test(expression: Expression) -> Test:
    """A function of (row, context) that does what `test` does; it raises nothing."""
    truth = compile_truth(expression)

    def passes(row: Row, context: Context) -> bool:
        try:
            return truth(row, context)
        except ExpressionError:
            return False
    return passes


_CACHE_SIZE = 512
_cache: OrderedDict[int, tuple[Expression, tuple[Term, Test]]] = OrderedDict()


def _cached(expression: Expression) -> tuple[Term, Test]:
    # By identity: equal expressions at different places of a text are different calls of RAND and the like.
    found = _cache.get(id(expression))
    if found is not None and found[0] is expression:
        return found[1]
    compiled = compile_term(expression), compile_test(expression)
    _cache[id(expression)] = expression, compiled
    while len(_cache) > _CACHE_SIZE:
        _cache.popitem(last=False)
    return compiled


_FORMS = frozenset(("&&", "||", "!", "BOUND", "IN", "NOT IN"))


class _Compiler:
    """Compiles one expression. Each kind of node becomes a closure; constants are worked out once."""

    def __init__(self) -> None:
        self.calls = 0

    def term(self, expression: Expression) -> Term:
        """A closure that gives the token or raises ExpressionError."""
        match expression:
            case Variable(name):
                return _variable(name)
            case Constant(token):
                return lambda row, context: token
            case Call("IF", (condition, then, other)):
                return self.if_form(condition, then, other)
            case Call("COALESCE", args):
                return self.coalesce(args)
            case Call(name) if name not in _FORMS and not _gives_truth(name):
                return self.call(expression)
            case Aggregate():
                raise ValueError("an aggregate has its value in a group, not in a row")
        truth = self.truth(expression)
        return lambda row, context: boolean(truth(row, context))

    def truth(self, expression: Expression) -> Test:
        """A closure that gives the effective boolean value or raises ExpressionError."""
        match expression:
            case Call("&&" | "||" as word):
                return _connect([self.truth(part) for part in operands(word, expression)], word == "||")
            case Call("!", (arg,)):
                inner = self.truth(arg)
                return lambda row, context: not inner(row, context)
            case Call("BOUND", (Variable(name),)):
                return lambda row, context: row.get(name) is not None
            case Call("BOUND", (Constant(),)):
                return lambda row, context: True    # what stands for a variable that EXISTS has substituted
            case Call("IN", (tested, *choices)):
                return self.membership(tested, choices, True)
            case Call("NOT IN", (tested, *choices)):
                return self.membership(tested, choices, False)
            case Call("<" | "<=" | ">" | ">=", (_, _)):
                return self.comparison(expression)
            case Call("=", (other, Constant(token))) | Call("=", (Constant(token), other)) if token[0] == "<":
                term = self.term(other)
                return lambda row, context: term(row, context) == token
            case Call("REGEX", (text, Constant(pattern), *flags)) if all(isinstance(flag, Constant) for flag in flags):
                return self.regex(text, pattern, *(flag.token for flag in flags if isinstance(flag, Constant)))
            case Call(name) if _gives_truth(name):
                return self.call(expression)  # type: ignore[return-value]
            case Exists():
                return _exists(expression)
            case Call(name) if name in _FORMS:
                return _failing(f"{name} does not take these arguments")
        term = self.term(expression)
        return lambda row, context: effective_boolean_value(term(row, context))

    def call(self, call: Call) -> Term:
        """A call of the library; an unknown one is an error of each evaluation."""
        if call.function in TIME_FUNCTIONS:
            return self.time(call)
        try:
            function = library.find(call.function, len(call.args))
        except ExpressionError as error:
            return _failing(str(error))
        args = [self.term(arg) for arg in call.args]
        apply = function.apply
        if function.volatile:
            return self.volatile(call, function, args)
        match args:
            case (only,):
                return lambda row, context: apply(only(row, context))  # type: ignore[return-value]
            case (first, second):
                return lambda row, context: apply(first(row, context), second(row, context))  # type: ignore[return-value]
        return lambda row, context: apply(*[arg(row, context) for arg in args])  # type: ignore[return-value]

    def time(self, call: Call) -> Term:
        """A time function, which the context knows the value of."""
        args = [self.term(arg) for arg in call.args]

        def moment(row: Row, context: Context) -> str:
            found = context.look_up and context.look_up(call.function, tuple(arg(row, context) for arg in args))
            if found is None:
                raise ExpressionError(f"{call.function} has no value")
            return dates.at(found)
        return moment

    def volatile(self, call: Call, function: Function, args: list[Term]) -> Term:
        """A call of NOW, RAND, UUID, STRUUID or BNODE, told apart by its place in the text, or its number in the expression."""
        self.calls += 1
        site = f"at {call.span.start}" if call.span is not None else f"number {self.calls}"
        apply, rowwise = function.apply, function.rowwise

        def evaluate_call(row: Row, context: Context) -> str:
            known = replace(context, row=row_key(row)) if rowwise and not context.row else context
            return apply(known, site, *[arg(row, context) for arg in args])  # type: ignore[return-value]
        return evaluate_call

    def if_form(self, condition: Expression, then: Expression, other: Expression) -> Term:
        truth, first, second = self.truth(condition), self.term(then), self.term(other)
        return lambda row, context: first(row, context) if truth(row, context) else second(row, context)

    def coalesce(self, args: tuple[Expression, ...]) -> Term:
        terms = [self.term(arg) for arg in args]

        def first_value(row: Row, context: Context) -> str:
            for term in terms:
                try:
                    return term(row, context)
                except ExpressionError:
                    continue
            raise ExpressionError("COALESCE: no argument has a value")
        return first_value

    def membership(self, tested: Expression, choices: list[Expression], wanted: bool) -> Test:
        """IN (`wanted` true) and NOT IN: as a chain of ``=`` joined by ``||``, errors included."""
        value, terms = self.term(tested), [self.term(choice) for choice in choices]
        known = frozenset(c.token for c in choices if isinstance(c, Constant) and equal(c.token, c.token))
        if all(isinstance(choice, Constant) and choice.token[0] == "<" for choice in choices):
            return lambda row, context: (value(row, context) in known) is wanted

        def is_member(row: Row, context: Context) -> bool:
            token, failure = value(row, context), None
            if token in known:
                return wanted
            for term in terms:
                try:
                    if equal(token, term(row, context)):
                        return wanted
                except ExpressionError as error:
                    failure = error
            if failure is not None:
                raise failure
            return not wanted
        return is_member

    def comparison(self, call: Call) -> Test:
        """``< <= > >=``, with constants decoded once."""
        holds = HOLDS[call.function]
        left, right = call.args
        first = self.term(left)
        if isinstance(right, Constant):
            constant = decode(right.token)
            return lambda row, context: compare_values(decode(first(row, context)), constant) in holds
        second = self.term(right)
        return lambda row, context: compare_values(decode(first(row, context)), decode(second(row, context))) in holds

    def regex(self, text: Expression, pattern: str, flags: str = '""') -> Test:
        """REGEX with a constant pattern, compiled once."""
        source = self.term(text)
        try:
            matches = regex(simple_text(pattern), simple_text(flags)).matches
        except ExpressionError as error:
            return _failing(str(error))
        return lambda row, context: matches(text_of(source(row, context))[0])


def _gives_truth(name: str) -> bool:
    function = library.FUNCTIONS.get(name) or library.OF_RULES.get(name)
    return function is not None and function.truth


def _variable(name: str) -> Term:
    def value(row: Row, context: Context) -> str:
        token = row.get(name)
        if token is None:
            raise ExpressionError("unbound")
        return token
    return value


def _failing(message: str) -> Callable[[Row, Context], NoReturn]:
    def fail(row: Row, context: Context) -> NoReturn:
        raise ExpressionError(message)
    return fail


def _connect(parts: list[Test], decisive: bool) -> Test:
    """``||`` (`decisive` true) or ``&&`` (false): one decisive part decides, else an error in any part is one (section 17.2)."""
    def connected(row: Row, context: Context) -> bool:
        failure = None
        for part in parts:
            try:
                if part(row, context) is decisive:
                    return decisive
            except ExpressionError as error:
                failure = error
        if failure is not None:
            raise failure
        return not decisive
    return connected


def _exists(expression: Exists) -> Test:
    def found(row: Row, context: Context) -> bool:
        if context.exists is None:
            raise ValueError("EXISTS in a context that cannot look")
        return context.exists(expression, row) is not expression.negated
    return found
