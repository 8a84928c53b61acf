"""Character classes of XPath regular expressions: Unicode categories, blocks, name characters (XSD 1.1 part 2, F.1.1 and G.4.2)."""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

from engine import timeline
from engine.grouping import by_key
from engine.ir.terms import LETTERS, WORD

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint ranges of code points, ends included."""

LAST = 0x10FFFF
SPACE: Ranges = ((0x9, 0xA), (0xD, 0xD), (0x20, 0x20))
_CATEGORIES = frozenset(("L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po Z Zs Zl Zp S Sm Sc Sk So C Cc Cf Co Cn").split())


def merge(*sets: Ranges) -> Ranges:
    """The union."""
    return tuple((low, end - 1) for low, end in timeline.merge((low, high + 1) for ranges in sets for low, high in ranges))


def complement(ranges: Ranges) -> Ranges:
    """All other code points."""
    gaps, start = [], 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


@lru_cache(maxsize=1)
def _by_category() -> dict[str, Ranges]:
    """The ranges of each two-letter general category, of Python's version of Unicode."""
    runs = ((name, list(codes)) for name, codes in groupby(range(LAST + 1), lambda code: unicodedata.category(chr(code))))
    return {name: tuple(ranges) for name, ranges in by_key((name, (run[0], run[-1])) for name, run in runs).items()}


@lru_cache(maxsize=None)
def category(name: str) -> Ranges | None:
    """The characters of a general category (``L``, ``Lu``); None for an unknown name."""
    if name not in _CATEGORIES:
        return None
    return merge(*(ranges for key, ranges in _by_category().items() if key.startswith(name) and key != "Cs"))


@lru_cache(maxsize=None)
def escape_class(letter: str) -> Ranges:
    r"""The characters of ``\s \S \d \D \w \W \i \I \c \C``, given by the letter."""
    if letter.isupper():
        return complement(escape_class(letter.lower()))
    if letter == "s":
        return SPACE
    if letter in "ic":
        written = f"{LETTERS}_:" if letter == "i" else f"{WORD}.:-"
        return merge(tuple((ord(low), ord(high or low)) for low, high in re.findall("(.)(?:-(.))?", written)))
    if letter == "d":
        return category("Nd") or ()
    return complement(merge(*(category(name) or () for name in "PZC")))


_BLOCKS = """
0000-007F BasicLatin|0080-00FF Latin-1Supplement|0100-017F LatinExtended-A|0180-024F LatinExtended-B|0250-02AF IPAExtensions
02B0-02FF SpacingModifierLetters|0300-036F CombiningDiacriticalMarks|0370-03FF Greek|0370-03FF GreekandCoptic
0400-04FF Cyrillic|0500-052F CyrillicSupplement|0530-058F Armenian|0590-05FF Hebrew|0600-06FF Arabic|0700-074F Syriac
0750-077F ArabicSupplement|0780-07BF Thaana|07C0-07FF NKo|0900-097F Devanagari|0980-09FF Bengali|0A00-0A7F Gurmukhi
0A80-0AFF Gujarati|0B00-0B7F Oriya|0B80-0BFF Tamil|0C00-0C7F Telugu|0C80-0CFF Kannada|0D00-0D7F Malayalam|0D80-0DFF Sinhala
0E00-0E7F Thai|0E80-0EFF Lao|0F00-0FFF Tibetan|1000-109F Myanmar|10A0-10FF Georgian|1100-11FF HangulJamo|1200-137F Ethiopic
13A0-13FF Cherokee|1400-167F UnifiedCanadianAboriginalSyllabics|1680-169F Ogham|16A0-16FF Runic|1700-171F Tagalog
1720-173F Hanunoo|1740-175F Buhid|1760-177F Tagbanwa|1780-17FF Khmer|1800-18AF Mongolian|1900-194F Limbu|1950-197F TaiLe
19E0-19FF KhmerSymbols|1D00-1D7F PhoneticExtensions|1E00-1EFF LatinExtendedAdditional|1F00-1FFF GreekExtended
2000-206F GeneralPunctuation|2070-209F SuperscriptsandSubscripts|20A0-20CF CurrencySymbols|20D0-20FF CombiningMarksforSymbols
20D0-20FF CombiningDiacriticalMarksforSymbols|2100-214F LetterlikeSymbols|2150-218F NumberForms|2190-21FF Arrows
2200-22FF MathematicalOperators|2300-23FF MiscellaneousTechnical|2400-243F ControlPictures
2440-245F OpticalCharacterRecognition|2460-24FF EnclosedAlphanumerics|2500-257F BoxDrawing|2580-259F BlockElements
25A0-25FF GeometricShapes|2600-26FF MiscellaneousSymbols|2700-27BF Dingbats|27C0-27EF MiscellaneousMathematicalSymbols-A
27F0-27FF SupplementalArrows-A|2800-28FF BraillePatterns|2900-297F SupplementalArrows-B
2980-29FF MiscellaneousMathematicalSymbols-B|2A00-2AFF SupplementalMathematicalOperators
2B00-2BFF MiscellaneousSymbolsandArrows|2E80-2EFF CJKRadicalsSupplement|2F00-2FDF KangxiRadicals
2FF0-2FFF IdeographicDescriptionCharacters|3000-303F CJKSymbolsandPunctuation|3040-309F Hiragana|30A0-30FF Katakana
3100-312F Bopomofo|3130-318F HangulCompatibilityJamo|3190-319F Kanbun|31A0-31BF BopomofoExtended
31F0-31FF KatakanaPhoneticExtensions|3200-32FF EnclosedCJKLettersandMonths|3300-33FF CJKCompatibility
3400-4DBF CJKUnifiedIdeographsExtensionA|4DC0-4DFF YijingHexagramSymbols|4E00-9FFF CJKUnifiedIdeographs|A000-A48F YiSyllables
A490-A4CF YiRadicals|AC00-D7AF HangulSyllables|E000-F8FF PrivateUse|E000-F8FF PrivateUseArea
F900-FAFF CJKCompatibilityIdeographs|FB00-FB4F AlphabeticPresentationForms|FB50-FDFF ArabicPresentationForms-A
FE00-FE0F VariationSelectors|FE20-FE2F CombiningHalfMarks|FE30-FE4F CJKCompatibilityForms|FE50-FE6F SmallFormVariants
FE70-FEFF ArabicPresentationForms-B|FF00-FFEF HalfwidthandFullwidthForms|FFF0-FFFF Specials|10000-1007F LinearBSyllabary
10080-100FF LinearBIdeograms|10300-1032F OldItalic|10330-1034F Gothic|10380-1039F Ugaritic|10400-1044F Deseret
1D000-1D0FF ByzantineMusicalSymbols|1D100-1D1FF MusicalSymbols|1D400-1D7FF MathematicalAlphanumericSymbols
1F300-1F5FF MiscellaneousSymbolsandPictographs|1F600-1F64F Emoticons|20000-2A6DF CJKUnifiedIdeographsExtensionB
2F800-2FA1F CJKCompatibilityIdeographsSupplement|E0000-E007F Tags
"""
BLOCKS: dict[str, Ranges] = {name: ((int(low, 16), int(high, 16)),) for low, high, name in re.findall(r"(\w+)-(\w+) ([^|\n]+)", _BLOCKS)}
"""Unicode blocks by the names of ``\\p{IsName}``, without spaces."""
