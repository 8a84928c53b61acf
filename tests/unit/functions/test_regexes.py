"""Regular expressions: the syntax of XPath, flags, replacement, and time."""

import re
import time

import pytest
from hypothesis import assume, given, settings, strategies as st

from engine.functions.context import ExpressionError
from engine.functions.regexes import Regex, regex

from .notation import result, token


def problem(pattern: str, flags: str = "") -> str | None:
    """What is wrong with a pattern or its flags, None where nothing is."""
    try:
        regex(pattern, flags)
    except ExpressionError as error:
        return str(error)
    return None


@pytest.mark.parametrize("pattern, flags, matching, others", [
    ("bra", "", ["abracadabra"], ["BRA"]), ("^a.*a$", "", ["abracadabra", "aa"], ["a", "abra\n"]),
    ("^bra", "", [], ["abracadabra"]),
    ("", "", ["", "x"], []), ("a|", "", ["", "b"], []), ("colou?r", "i", ["COLOR", "Colour"], ["colr"]),
    ("a.b", "", ["axb", "a\rb"], ["a\nb", "ab"]), ("a.b", "s", ["a\nb"], ["ab"]), ("^b$", "m", ["a\nb\nc", "b"], ["ab"]),
    ("^b$", "", [], ["a\nb\nc", "b\n"]),
    ("x^", "m", [], ["x\n"]), ("^$", "m", ["", "a\n\nb"], ["a\n"]), ("^x", "m", ["a\nx"], ["ax"]),
    ("a$", "m", ["a\nb"], ["ab\n"]),
    ("h e\tl\nl o", "x", ["hello"], ["h ello"]), ("[ ]a", "x", [" a"], ["a"]), ("a.b[", "q", ["a.b["], ["axb["]),
    ("A.B", "qi", ["a.b"], ["axb"]),
    ("^[a-z-[aeiou]]+$", "", ["xyz"], ["xaz", "X"]), ("^[^a-c]$", "", ["d", "\n"], ["b"]), ("^[-a]+$", "", ["-a-"], ["b"]),
    ("^[a-]$", "", ["-"], ["b"]),
    ("^[\\d\\-x]+$", "", ["1-x"], ["y"]), ("^[\\^\\]\\[\\\\]+$", "", ["^][\\"], ["a"]), ("^[^\\s]$", "", ["a"], [" ", "\t"]),
    ("^[^-a]$", "", ["b"], ["-", "a"]),
    ("^\\d+$", "", ["12", "٣"], ["²", "a"]), ("^\\w$", "", ["a", "é", "1", "+"], ["_", "-", " ", "\u200b"]),
    ("^\\W$", "", ["_", "."], ["a"]),
    ("^\\s$", "", [" ", "\t", "\n", "\r"], ["\u00a0", "\x0b"]), ("^\\S$", "", ["\u00a0"], [" "]),
    ("^\\i\\c*$", "", ["a:b-c.d1", "_x"], ["1a", "-a"]),
    ("^\\p{Lu}\\p{Ll}+$", "", ["Élan"], ["élan"]), ("^\\P{L}$", "", ["1"], ["a"]), ("^\\p{IsGreek}+$", "", ["αβγ"], ["abc"]),
    ("^\\P{IsBasicLatin}$", "", ["é"], ["e"]),
    ("^[\\p{L}0-9]+$", "", ["é9"], ["_"]), ("^\\p{Lu}$", "i", ["A"], ["a"]), ("^[\\p{Lu}x]$", "i", ["A", "X", "x"], ["a"]),
    ("^[^x]$", "i", ["y"], ["X", "x"]),
    ("^[a-z-[io]]$", "i", ["A", "b"], ["I", "o"]), ("^[^\\p{Lu}x]$", "i", ["a"], ["A", "X"]), ("^\\p{So}$", "", ["☃"], ["a"]),
    ("^(ab)\\1$", "", ["abab"], ["abba"]), ("^(a)?b\\1$", "", ["b", "aba"], ["ab"]),
    ("^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10\\1$", "", ["abcdefghijja"], []),
    ("^a{2}$", "", ["aa"], ["a", "aaa"]), ("^a{2,}$", "", ["aa", "aaaa"], ["a"]), ("^a{1,2}$", "", ["a"], ["aaa"]),
    ("^a{0}b$", "", ["b"], ["ab"]),
    ("^(?:ab)+$", "", ["abab"], ["aba"]), ("^a*?b$", "", ["aab"], ["ba"]),
    ("\\.\\*\\+\\?\\(\\)\\{\\}\\|\\$\\-\\n\\t\\r", "", [".*+?(){}|$-\n\t\r"], []),
    ("ß", "i", ["ß"], ["ss"]), ("é", "i", ["É"], ["e"]), ("^😀.$", "", ["😀😀"], ["😀"]), ("^[😀-😃]$", "", ["😁"], ["😎"]),
])
def test_matching(pattern: str, flags: str, matching: list[str], others: list[str]) -> None:
    found = Regex(pattern, flags)
    assert [text for text in matching if not found.matches(text)] == []
    assert [text for text in others if found.matches(text)] == []
    if "\\1" not in pattern:
        assert [text for text in matching if not found.finder.machine.search(text)] == []
        assert [text for text in others if found.finder.machine.search(text)] == []


@pytest.mark.parametrize("pattern", [
    "(", ")", "a)", "[", "]", "[]", "[^]", "a]", "{", "}", "a{", "a{,2}", "a{2,1}", "a{1001}", "*", "+a", "?", "a**", "a*+",
    "a{2}{3}", "a???", "(?=a)", "(?!a)",
    "(?P<n>a)", "(?i)a", "(?<=a)b", "(?>a)", "\\b", "\\A", "\\Z", "\\e", "\\x41", "\\u0041", "\\0", "\\1", "(a\\1)", "\\2(a)",
    "\\", "a\\", "\\p", "\\pL", "\\p{}", "\\p{Xx}",
    "\\p{IsNowhere}", "[b-a]", "[a-\\d]", "[\\d-a]", "[a[b]]", "[a-z-[x]y]", "[a-b-c]", "(a|b", "a" * 5001, "(" * 150 + ")" * 150,
])
def test_what_is_no_pattern(pattern: str) -> None:
    assert problem(pattern)


@pytest.mark.parametrize("flags", ["j", "I", "ii j", " "])
def test_what_is_no_flag(flags: str) -> None:
    assert problem("a", flags)
    assert problem("a", "smixq") is None and problem("a", "ii") is None


@pytest.mark.parametrize("args, expected", [
    (('"abcd"', '"b"', '"Z"'), '"aZcd"'), (('"abab"', '"B"', '"Z"', '"i"'), '"aZaZ"'),
    (('"abab"', '"B."', '"Z"', '"i"'), '"aZb"'),
    (('"abracadabra"', '"bra"', '"*"'), '"a*cada*"'), (('"abracadabra"', '"a.*a"', '"*"'), '"*"'),
    (('"abracadabra"', '"a.*?a"', '"*"'), '"*c*bra"'),
    (('"abracadabra"', '"a"', '""'), '"brcdbr"'), (('"abracadabra"', '"a(.)"', '"a$1$1"'), '"abbraccaddabbra"'),
    (('"abracadabra"', '".*?"', '"$1"'), None),
    (('"AAAA"', '"A+"', '"b"'), '"b"'), (('"AAAA"', '"A+?"', '"b"'), '"bbbb"'),
    (('"darted"', '"^(.*?)d(.*)$"', '"$1c$2"'), '"carted"'),
    (('"abcd"', '"(ab)|(a)"', '"[1=$1][2=$2]"'), '"[1=ab][2=]cd"'), (('"abc"', '"b"', '"$0$0"'), '"abbc"'),
    (('"abc"', '"(b)"', '"$12"'), '"ab2c"'),
    (('"abc"', '"b"', '"$1"'), '"ac"'), (('"abc"', '"b"', '"\\\\$"'), '"a$c"'), (('"abc"', '"b"', '"\\\\\\\\"'), '"a\\\\c"'),
    (('"abc"', '"b"', '"$"'), None),
    (('"abc"', '"b"', '"\\\\n"'), None), (('"abc"', '"b"', '"$x"'), None), (('"a.c"', '"."', '"$1\\\\"', '"q"'), '"a$1\\\\c"'),
    (('"abc"@en', '"b"', '"x"'), '"axc"@en'),
    (('"abc"', '"b"@en', '"x"'), None), (('"abc"', '"b"', '"x"@en'), None), (("1", '"1"', '"x"'), None),
    (('"abc"', '"x?"', '"-"'), None), (('"abc"', '"^"', '"-"'), None),
    (('"abc"', '"["', '"-"'), None), (('"abc"', '"b"', '"-"', '"z"'), None), (('"a\\nb"', '"^b"', '"x"', '"m"'), '"a\\nx"'),
    (('"abc"', '"zzz"', '"x"'), '"abc"'),
])
def test_replace(args: tuple[str, ...], expected: str | None) -> None:
    """With the examples of XPath F&O section 7.6.3 and SPARQL 1.1 section 17.4.3.15."""
    assert result("REPLACE", *args) == (expected and token(expected))


@pytest.mark.parametrize("args, expected", [
    (('"Alice"', '"^ali"', '"i"'), "true"), (('"Alice"@en', '"^ali"'), "false"), (('"Alice"', '"^Ali"@en'), None),
    (("1", '"1"'), None), (('"a"', '"a"', "1"), None),
    (("<http://a>", '"a"'), None), (('"a"', '"("'), None), (('"a"', '"a"', '"k"'), None),
])
def test_regex(args: tuple[str, ...], expected: str | None) -> None:
    assert result("REGEX", *args) == (expected and token(expected))


@pytest.mark.parametrize("pattern, text", [
    ("(a+)+$", "a" * 2000 + "b"), ("(a|aa)+$", "a" * 2000 + "b"), ("(a|a)*c", "a" * 2000 + "b"),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 2000), ("(x+x+)+y", "x" * 2000),
    (".*.*.*.*=", "a" * 2000), ("(a?){30}a{30}b", "a" * 30), ("^(\\w+\\s?)*$", "word " * 300 + "!"),
    ("(.*a){12}$", "a" * 300 + "b"),
])
def test_catastrophic_patterns_take_no_time(pattern: str, text: str) -> None:
    start = time.perf_counter()
    assert not Regex(pattern).matches(text)
    Regex("x" + pattern).replace(text, "y")
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("pattern", ["(((){1000}){1000}){1000}", "(((a?){100}){100}){100}", "((a{1000}){1000}){1000}b"])
def test_repeats_of_repeats_take_no_time_either(pattern: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ExpressionError, match="too large"):
        Regex(pattern).matches("aaa")
    assert time.perf_counter() - start < 20


def test_a_catastrophe_with_back_references_is_refused() -> None:
    with pytest.raises(ExpressionError):
        Regex("((a+)+\\2)+$").matches("a" * 100)


def test_a_text_too_long_for_the_linear_matcher_is_refused() -> None:
    with pytest.raises(ExpressionError):
        Regex("(a{1,50}b?)+$").replace("a" * 100_000 + "c", "")


@pytest.mark.parametrize("pattern, replacement, python", [("((a)+)b", "<$1|$2>", r"<\1|\2>"), ("(b)|a", "[$1]", r"[\1]"),
                                                          ("a+? ?", "-", "-")])
def test_linear_replacement_is_that_of_backtracking(pattern: str, replacement: str, python: str) -> None:
    text = "aab ab b " * 10
    found = Regex(pattern)
    assert found.replace(text, replacement) == re.sub(pattern, python, text)
    assert found.replacer.longest > len(text)
    found.replacer.longest = -1
    assert found.replace(text, replacement) == re.sub(pattern, python, text)


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\n", "^", "$", "é", "\\d", "[\\w-[b]]"])
PATTERNS = st.recursive(ATOMS, lambda inner: st.one_of(
    st.tuples(inner, inner).map("".join), st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
    st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "{2}", "*?", "+?"])).map(lambda pair: f"({pair[0]}){pair[1]}")),
    max_leaves=6)


@settings(max_examples=120)
@given(PATTERNS, st.text("ab\né1", max_size=8), st.sampled_from(["", "i", "m", "s", "ms"]))
def test_both_matchers_agree(pattern: str, text: str, flags: str) -> None:
    engine = Regex(pattern, flags).finder
    assume(engine.longest >= len(text))
    assert engine.machine.search(text) == engine.search(text)


@given(st.text(max_size=12))
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    try:
        Regex(text).matches("abc")
    except ExpressionError:
        pass


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
       st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_flag_q_finds_the_text_itself(pattern: str, text: str) -> None:
    assert Regex(pattern, "q").matches(text) == (pattern in text)
