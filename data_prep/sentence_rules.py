"""Where one sentence ends and the next begins: rules for running text, English first.

A candidate is a run of enders (`.`, `!`, `?`, `…`), whatever closes after it (quotes, brackets, note marks such as
`[12]`), and white space. It is a boundary unless what comes before it (an abbreviation, an initial, a list number)
or after it (a lower-case letter, a comma) shows otherwise. The enders of other scripts need no white space after them.
"""

import re
from collections.abc import Iterable

# Never the last word of a sentence.
_TITLES = """
    mr mrs ms mx messrs mm dr drs prof profs rev revd hon gen gens col cols maj capt cpt cmdr comdr lt lieut sgt cpl
    pvt adm brig sen rep gov pres supt insp mlle mme mons mgr msgr e.g eg i.e ie viz cf vs approx esp incl resp ca
    a.k.a aka v rs
"""
# Abbreviations before a number, otherwise ordinary words: `No. 5`, but `He said no. Then`.
_BEFORE_NUMBERS = """
    no nos vol vols pp p fig figs ch chap sec sect art arts eq eqs ed eds cap op pt pts bk ver rt rte hwy tel fl
    jan feb mar apr jun jul aug sep sept oct nov dec
"""
# May end a sentence: they do where the next word often starts sentences and is seldom a name.
_MAY_END = """
    etc inc ltd co corp jr sr st ste mt ft fr br bros al esq ave blvd dept univ assn assoc bldg est lit rd sq plc cie
    mfg intl govt natl penn conn calif fla tenn ariz colo minn wis mich okla ont que vt lbs lb oz mi km cm mm kg
    hrs hr min jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri
"""
# Words that start sentences far more often than names. `I` is missing because it follows initials and ellipses.
_STARTERS = """
    a an the this that these those it its he his she her they their we our you your there here then thus so but and or
    nor yet for if in on at by to from with without within of as after before during since until while when where
    whereas although though because however moreover furthermore nevertheless therefore hence also both each every all
    most many some several few no not none one two three another other such what who whom why how which once upon
    under over through between among despite according unlike like even still now soon later today following
    additionally instead meanwhile finally early much more only again can could did do does is was were are will would
    should have has had my
"""

_OPENING = "\"'“‘«‹([{¿¡„‚—–*_-"
_CLOSING = "\"'”’»›)\\]}*_"
_NOTE = r"\[[^\[\]]{1,24}\]|:\d{1,4}(?=\s)"
_ENDERS_ANYWHERE = "。｡！？؟۔।॥։။។"
_CLOSING_ANYWHERE = _CLOSING + "」』）】》〉"

_CANDIDATE = rf"[.!?…][.!?…]*(?:[{_CLOSING}]|{_NOTE})*\s+"
_ASCII_CANDIDATE = re.compile(_CANDIDATE)
_ANY_CANDIDATE = re.compile(rf"{_CANDIDATE}|[{_ENDERS_ANYWHERE}][{_ENDERS_ANYWHERE}.!?…]*[{_CLOSING_ANYWHERE}]*\s*")

_NEXT_WORD = re.compile(rf"[{re.escape(_OPENING)}]*(?:\.\.\.|…)?\s?([^\W_]+)?")
_LETTERS_AND_STOPS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]{1,3}|ph\.d")
_ROMAN = re.compile(r"[IVXLC]+\Z")
_ODD_SPACE = re.compile(r"[^\S ]|  ")
_SPEECH = re.compile(
    r"I (?:said|asked|cried|exclaimed|replied|answered|repeated|shouted|demanded|thought|whispered|continued)\b"
)
# What may follow a closed Japanese or Chinese quotation inside its sentence.
_QUOTATIVE = "とっ、，,"

# How many characters before a full stop are searched for a word: no abbreviation is longer.
_LOOK_BACK = 16
_WORD_BEFORE = re.compile(r"[^\s\"'“”‘’(\[{—–/-]*\Z")


class SentenceSplitter:
    """Splits paragraphs into sentences.

    Args:
        abbreviations: additional words (with or without their full stop) that never end a sentence.

    Example:
        >>> SentenceSplitter().split('Mr. Smith said "Go." Then he left.')
        ['Mr. Smith said "Go."', 'Then he left.']
    """

    def __init__(self, abbreviations: Iterable[str] = ()) -> None:
        self._titles = set(_TITLES.split()) | {word.strip().rstrip(".").lower() for word in abbreviations} - {""}
        self._before_numbers = set(_BEFORE_NUMBERS.split())
        self._may_end = set(_MAY_END.split())
        self._starters = {word.capitalize() for word in _STARTERS.split()}

    def split(self, paragraph: str) -> list[str]:
        """Cuts one paragraph into sentences.

        Args:
            paragraph: running text; line breaks and runs of white space count as one space.

        Returns:
            The sentences in order, with no character lost except white space; empty for a blank paragraph.
        """
        # Splitting at white space is slow, and most paragraphs do not need it.
        paragraph = " ".join(paragraph.split()) if _ODD_SPACE.search(paragraph) else paragraph.strip(" ")
        if not paragraph:
            return []
        candidates = _ASCII_CANDIDATE if paragraph.isascii() else _ANY_CANDIDATE
        sentences = []
        start = 0
        for candidate in candidates.finditer(paragraph):
            if self._ends(paragraph, start, candidate):
                sentences.append(paragraph[start : candidate.end()].rstrip(" "))
                start = candidate.end()
        if start < len(paragraph):
            sentences.append(paragraph[start:])
        return sentences

    def _ends(self, paragraph: str, start: int, candidate: re.Match[str]) -> bool:
        """Whether the sentence that began at `start` ends with this candidate."""
        mark = candidate.group()
        end = candidate.end()
        if end == len(paragraph):
            return False  # nothing follows
        if mark[0] in _ENDERS_ANYWHERE:
            return not (mark.rstrip()[-1] in "」』）" and paragraph[end] in _QUOTATIVE)

        following = _NEXT_WORD.match(paragraph, end)
        assert following is not None  # it matches the empty string too
        word = following.group(1)
        if word is None:
            return self._ends_before_symbol(paragraph, following.end())
        if word[0].islower():
            return False
        enders = mark.rstrip()
        if enders[0] != "." or enders[:2] == "..":
            return not self._speech_continues(enders, paragraph, following.start(1), word)
        if len(enders) > 1 and enders[1] not in ".!?…" and enders[1] in "\"”’'":
            return True  # `said "Go." Then`: a full stop inside the quotation
        return self._full_stop_ends(paragraph, start, candidate.start(), following)

    def _ends_before_symbol(self, paragraph: str, at: int) -> bool:
        """A sentence may begin with a sign (`$5 was`, `£`, an emoji), but not with a continuation (`. . .`, `!,`)."""
        return at < len(paragraph) and paragraph[at] not in ".!?…,;:)]}%&/=<>|+*"

    def _speech_continues(self, enders: str, paragraph: str, at: int, word: str) -> bool:
        """`"Why?" I asked` and `I ... I mean` are one sentence. (`"Why?" he asked` is recognised by its lower case.)"""
        if enders[-1] in "\"'”’" and _SPEECH.match(paragraph, at):
            return True
        return word == "I" and enders[0] in ".…" and enders[-1] in ".…"

    def _full_stop_ends(self, paragraph: str, start: int, stop: int, following: re.Match[str]) -> bool:
        """Whether a full stop at `stop` ends the sentence, judged by the words before and after it."""
        before = _WORD_BEFORE.search(paragraph, max(start, stop - _LOOK_BACK), stop)
        assert before is not None  # it matches the empty string too
        token = before.group()
        if not token:
            return True
        word, next_word = token.lower(), following.group(1)
        if word in self._titles:
            return False
        is_letter = len(token) == 1 and token.isalpha()
        if next_word[0].isdigit() and (is_letter or word in self._before_numbers or word in self._may_end):
            return False
        if before.start() == start and len(token) <= 3 and (token.isdecimal() or _ROMAN.match(token)):
            return False  # the number of a list or a heading: `1. First`, `IV. The`
        # `World War I. The` against `George W. Bush`, `in the U.S. The` against `the U.S. Congress`, `J. A. Hort`.
        is_initial = paragraph[following.end() : following.end() + 1] == "."
        starts_sentence = next_word in self._starters and not (len(next_word) == 1 and is_initial)
        if is_letter:
            return starts_sentence
        if word in self._may_end or _LETTERS_AND_STOPS.fullmatch(word):
            return starts_sentence or following.start(1) > following.start()
        return True


def split(paragraph: str) -> list[str]:
    """`SentenceSplitter().split`, with the abbreviations listed here."""
    return _DEFAULT.split(paragraph)


_DEFAULT = SentenceSplitter()
