"""Mathematics as MathML, which browsers set by themselves. Pure.

The part of TeX's notation that models write in a chat. What is not in it stays as it was written:
`render_math` then gives the source, which is better than a formula that says something else.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

LONGEST: Final = 2_000
"""Characters of one formula that are read."""
DEEPEST: Final = 20
"""Levels of what stands in something else."""

_DELIMITED: Final = re.compile(
    r"\$\$(?P<b>.+)\$\$|\$(?P<a>[^$]+)\$|\\\[(?P<d>.+)\\\]|\\\((?P<c>.+)\\\)", re.S
)
_TOKEN: Final = re.compile(r"\\(?:[A-Za-z]+\*?|[^A-Za-z])|\d+(?:[.,]\d+)*|\s+|.", re.S)


def render_math(source: str) -> str:
    """A formula with its dollars or brackets, as it stood in the text."""
    found = _DELIMITED.fullmatch(source)
    if found is None or len(source) > LONGEST:
        return _as_written(source)
    kind = found.lastgroup or "a"
    try:
        inner = _Formula(_TOKEN.findall(found[kind])).whole()
    except _Unknown:
        return _as_written(source)
    if kind in "ac":
        return f"<math>{inner}</math>"
    return f'<span class="formula" tabindex="0"><math display="block">{inner}</math></span>'


def _as_written(source: str) -> str:
    return f'<code class="math">{escape(source)}</code>'


class _Unknown(Exception):
    """Something of it is not read here."""


class _Tokens:
    """What is left of a formula. White space counts in texts alone."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str:
        """The next token that is no white space; empty at the end."""
        while self._at < len(self._tokens) and self._tokens[self._at].isspace():
            self._at += 1
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def next(self) -> str:
        """Take it. Raises `_Unknown` at the end."""
        token = self.peek()
        if not token:
            raise _Unknown
        self._at += 1
        return token

    def close(self, wanted: str) -> None:
        """Take what must come next. Raises `_Unknown` where it does not."""
        if self.next() != wanted:
            raise _Unknown

    def braced(self) -> str:
        """What stands in braces, as it was written. Raises `_Unknown` for more than a text."""
        self.close("{")
        words = ""
        while self._at < len(self._tokens) and self._tokens[self._at] != "}":
            words += self._tokens[self._at]
            self._at += 1
        self.close("}")
        if any(sign in words for sign in "\\{$"):
            raise _Unknown
        return words


class _Formula:
    """Reads tokens from left to right."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = _Tokens(tokens)
        self._depth = 0

    def whole(self) -> str:
        """All of it as one row."""
        row = self._row(())
        if self._tokens.peek():
            raise _Unknown
        return row

    def _row(self, ends: tuple[str, ...]) -> str:
        """Atoms up to one of `ends`, which is left."""
        atoms = []
        while self._tokens.peek() and self._tokens.peek() not in (*ends, "}"):
            atoms.append(self._scripted())
        return atoms[0] if len(atoms) == 1 else f"<mrow>{''.join(atoms)}</mrow>"

    def _scripted(self) -> str:
        """An atom with what stands above and below it."""
        large = self._tokens.peek() in _LARGE
        base = "<mrow></mrow>" if self._tokens.peek() in ("^", "_") else self._atom()
        below = above = ""
        while self._tokens.peek() in ("^", "_", "'"):
            sign = self._tokens.next()
            if sign == "_" and not below:
                below = self._atom()
            elif sign == "^" and not above:
                above = self._atom()
            elif sign == "'" and not above:
                primes = 1
                while self._tokens.peek() == "'":
                    self._tokens.next()
                    primes += 1
                above = f"<mo>{chr(0x2032) * primes}</mo>"
            else:
                raise _Unknown
        names = ("munder", "mover", "munderover") if large else ("msub", "msup", "msubsup")
        if below and above:
            return f"<{names[2]}>{base}{below}{above}</{names[2]}>"
        if below:
            return f"<{names[0]}>{base}{below}</{names[0]}>"
        return f"<{names[1]}>{base}{above}</{names[1]}>" if above else base

    def _atom(self) -> str:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _Unknown
        atom = self._bare_atom()
        self._depth -= 1
        return atom

    def _bare_atom(self) -> str:
        token = self._tokens.next()
        if token == "{":
            inner = self._row(())
            self._tokens.close("}")
            return inner
        if token in ("}", "&", "^", "_", "#", "$", "%"):
            raise _Unknown
        if token[0] == "\\":
            return self._command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return _operator(_SIGNS.get(token, token))

    def _command(self, name: str) -> str:
        if name in _LETTERS:
            return f"<mi>{_LETTERS[name]}</mi>"
        if name in _OPERATORS:
            return _operator(_OPERATORS[name])
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"></mspace>'
        if name in _FUNCTIONS:
            return f"<mi>{_FUNCTIONS[name]}</mi>"
        if name in _ACCENTS:
            return f"<mover>{self._atom()}<mo>{_ACCENTS[name]}</mo></mover>"
        if name in _TEXTS:
            return self._text(_TEXTS[name])
        if name in _ALPHABETS:
            return self._styled(_ALPHABETS[name])
        return self._structure(name)

    def _structure(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac"):
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name in ("binom", "dbinom", "tbinom"):
            inner = f'<mfrac linethickness="0">{self._atom()}{self._atom()}</mfrac>'
            return f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>"
        if name == "sqrt":
            return self._root()
        if name == "left":
            return self._between()
        if name in ("underline", "underbrace"):
            sign = "_" if name == "underline" else chr(0x23DF)
            return f"<munder>{self._atom()}<mo>{sign}</mo></munder>"
        if name == "begin":
            return self._environment()
        if name in _BIG:
            return self._fence(self._tokens.next())
        raise _Unknown

    def _root(self) -> str:
        if self._tokens.peek() != "[":
            return f"<msqrt>{self._atom()}</msqrt>"
        self._tokens.next()
        degree = self._row(("]",))
        self._tokens.close("]")
        return f"<mroot>{self._atom()}{degree}</mroot>"

    def _between(self) -> str:
        left = self._fence(self._tokens.next())
        inner = self._row(("\\right",))
        self._tokens.close("\\right")
        return f"<mrow>{left}{inner}{self._fence(self._tokens.next())}</mrow>"

    def _fence(self, token: str) -> str:
        if token == ".":
            return "<mrow></mrow>"
        sign = _OPERATORS.get(token[1:]) if token[0] == "\\" else token
        if sign is None or sign not in _FENCES:
            raise _Unknown
        return f"<mo>{escape(sign)}</mo>"

    def _text(self, element: str) -> str:
        words = " ".join(self._tokens.braced().split("\n"))
        # White space at the edges of an element counts for nothing in MathML.
        return f"<{element}>{escape(words).replace(' ', '&#160;')}</{element}>"

    def _styled(self, first: tuple[int, int]) -> str:
        """Letters of another alphabet: where it begins for capitals and for small letters."""
        braces = self._tokens.peek() == "{"
        letters = self._tokens.braced() if braces else self._tokens.next()
        if not (letters.isascii() and letters.isalpha()):
            raise _Unknown
        shown = "".join(_letter(one, first) for one in letters)
        return f"<mi>{shown}</mi>"

    def _environment(self) -> str:
        name = self._tokens.braced()
        if name not in _ENVIRONMENTS:
            raise _Unknown
        if name == "array":
            self._tokens.braced()
        rows, cells = list[str](), list[str]()
        while True:
            cells.append(self._row(("&", "\\\\", "\\end")))
            token = self._tokens.next()
            if token == "&":
                continue
            rows.append("".join(f"<mtd>{cell}</mtd>" for cell in cells))
            cells = []
            if token == "\\end":
                break
        if self._tokens.braced() != name:
            raise _Unknown
        left, right = _ENVIRONMENTS[name]
        table = "".join(f"<mtr>{row}</mtr>" for row in rows)
        signs = [f"<mo>{sign}</mo>" if sign else "" for sign in (left, right)]
        return f"<mrow>{signs[0]}<mtable>{table}</mtable>{signs[1]}</mrow>"


def _operator(sign: str) -> str:
    # A bracket is as large as what it holds only behind \left and \right.
    stretchy = ' stretchy="false"' if sign in _BRACKETS else ""
    return f"<mo{stretchy}>{escape(sign)}</mo>"


def _letter(one: str, first: tuple[int, int]) -> str:
    capital = one.isupper()
    place = first[0 if capital else 1] + ord(one) - ord("A" if capital else "a")
    return _EXCEPTIONS.get(place, chr(place))


def _words(text: str) -> Sequence[str]:
    return text.split()


_SIGNS: Final = {"-": "\u2212", "*": "\u2217", "'": "\u2032"}
_LETTERS: Final = {
    **dict(
        zip(
            _words(
                "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
                "pi rho varsigma sigma tau upsilon varphi chi psi omega"
            ),
            map(chr, range(0x3B1, 0x3CA)),
            strict=True,
        )
    ),
    **{"varepsilon": "\u03b5", "phi": "\u03d5", "vartheta": "\u03d1", "varpi": "\u03d6"},
    **{"varrho": "\u03f1", "Gamma": "\u0393", "Delta": "\u0394", "Theta": "\u0398"},
    **{"Lambda": "\u039b", "Xi": "\u039e", "Pi": "\u03a0", "Sigma": "\u03a3", "Phi": "\u03a6"},
    **{"Upsilon": "\u03a5", "Psi": "\u03a8", "Omega": "\u03a9", "infty": "\u221e"},
    **{"partial": "\u2202", "nabla": "\u2207", "ell": "\u2113", "hbar": "\u210f"},
    **{"emptyset": "\u2205", "varnothing": "\u2205", "aleph": "\u2135", "Re": "\u211c"},
    **{"Im": "\u2111", "imath": "\u0131", "jmath": "\u0237", "%": "%", "#": "#", "$": "$"},
    **{"_": "_", "&": "&amp;", "degree": "\u00b0"},
}
_LARGE_SIGNS: Final = {
    **{"sum": "\u2211", "prod": "\u220f", "coprod": "\u2210", "bigcup": "\u22c3"},
    **{"bigcap": "\u22c2", "bigoplus": "\u2a01", "bigotimes": "\u2a02", "bigvee": "\u22c1"},
    **{"bigwedge": "\u22c0"},
}
_OPERATORS: Final = {
    **_LARGE_SIGNS,
    **{"int": "\u222b", "iint": "\u222c", "iiint": "\u222d", "oint": "\u222e"},
    **{"times": "\u00d7", "div": "\u00f7", "cdot": "\u22c5", "pm": "\u00b1", "mp": "\u2213"},
    **{"ast": "\u2217", "star": "\u22c6", "circ": "\u2218", "bullet": "\u2219"},
    **{"le": "\u2264", "leq": "\u2264", "ge": "\u2265", "geq": "\u2265", "ne": "\u2260"},
    **{"neq": "\u2260", "ll": "\u226a", "gg": "\u226b", "approx": "\u2248", "equiv": "\u2261"},
    **{"sim": "\u223c", "simeq": "\u2243", "cong": "\u2245", "propto": "\u221d", "lt": "<"},
    **{"gt": ">", "in": "\u2208", "notin": "\u2209", "ni": "\u220b", "subset": "\u2282"},
    **{"subseteq": "\u2286", "supset": "\u2283", "supseteq": "\u2287", "cup": "\u222a"},
    **{"cap": "\u2229", "setminus": "\u2216", "land": "\u2227", "wedge": "\u2227"},
    **{"lor": "\u2228", "vee": "\u2228", "lnot": "\u00ac", "neg": "\u00ac", "forall": "\u2200"},
    **{"exists": "\u2203", "nexists": "\u2204", "to": "\u2192", "rightarrow": "\u2192"},
    **{"leftarrow": "\u2190", "gets": "\u2190", "leftrightarrow": "\u2194", "mapsto": "\u21a6"},
    **{"Rightarrow": "\u21d2", "implies": "\u27f9", "Leftarrow": "\u21d0", "iff": "\u27fa"},
    **{"Leftrightarrow": "\u21d4", "longrightarrow": "\u27f6", "uparrow": "\u2191"},
    **{"downarrow": "\u2193", "mid": "\u2223", "nmid": "\u2224", "parallel": "\u2225"},
    **{"perp": "\u22a5", "angle": "\u2220", "therefore": "\u2234", "because": "\u2235"},
    **{"oplus": "\u2295", "otimes": "\u2297", "ominus": "\u2296", "odot": "\u2299"},
    **{"dots": "\u2026", "ldots": "\u2026", "cdots": "\u22ef", "vdots": "\u22ee"},
    **{"ddots": "\u22f1", "prime": "\u2032", "vdash": "\u22a2", "models": "\u22a8"},
    **{"top": "\u22a4", "bot": "\u22a5", "colon": ":", "backslash": "\\", "{": "{", "}": "}"},
    **{"|": "\u2016", "lbrace": "{", "rbrace": "}", "langle": "\u27e8", "rangle": "\u27e9"},
    **{"lfloor": "\u230a", "rfloor": "\u230b", "lceil": "\u2308", "rceil": "\u2309"},
    **{"vert": "|", "Vert": "\u2016", "lvert": "|", "rvert": "|", "lVert": "\u2016"},
    **{"rVert": "\u2016"},
}
_FENCES: Final = frozenset("()[]{}|/<>\u2016\u27e8\u27e9\u230a\u230b\u2308\u2309\u2191\u2193")
_BRACKETS: Final = frozenset("()[]{}|\u2016\u27e8\u27e9\u230a\u230b\u2308\u2309")
_FUNCTIONS: Final = {
    name: name
    for name in _words(
        "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp det dim ker deg "
        "gcd lim max min sup inf arg Pr limsup liminf hom mod"
    )
} | {"argmax": "arg max", "argmin": "arg min"}
_LARGE: Final = frozenset(
    f"\\{name}" for name in (*_LARGE_SIGNS, "lim", "max", "min", "sup", "inf", "argmax", "argmin")
)
_SPACES: Final = {
    **{",": "0.17em", ":": "0.22em", ";": "0.28em", "!": "-0.17em", " ": "0.33em"},
    **{"quad": "1em", "qquad": "2em", "thinspace": "0.17em"},
}
_ACCENTS: Final = {
    **{"hat": "^", "widehat": "^", "bar": "\u00af", "overline": "\u00af", "tilde": "~"},
    **{"widetilde": "~", "vec": "\u2192", "dot": "\u02d9", "ddot": "\u00a8"},
    **{"overrightarrow": "\u2192", "overbrace": "\u23de"},
}
_TEXTS: Final = {
    **dict.fromkeys(("text", "textrm", "textit", "textbf", "mbox"), "mtext"),
    **dict.fromkeys(("mathrm", "operatorname", "operatorname*", "mathsf", "mathtt"), "mi"),
}
_BOLD: Final = (0x1D400, 0x1D41A)
_ALPHABETS: Final = {
    **{"mathbf": _BOLD, "boldsymbol": _BOLD, "bm": _BOLD, "mathbb": (0x1D538, 0x1D552)},
    **{"mathcal": (0x1D49C, 0x1D4B6), "mathscr": (0x1D49C, 0x1D4B6), "mathit": (0x41, 0x61)},
    **{"mathfrak": (0x1D504, 0x1D51E)},
}
# Letters that Unicode had before it had their alphabets.
_EXCEPTIONS: Final = {
    **{0x1D53A: "\u2102", 0x1D53F: "\u210d", 0x1D545: "\u2115", 0x1D547: "\u2119"},
    **{0x1D548: "\u211a", 0x1D549: "\u211d", 0x1D551: "\u2124", 0x1D49D: "\u212c"},
    **{0x1D4A0: "\u2130", 0x1D4A1: "\u2131", 0x1D4A3: "\u210b", 0x1D4A4: "\u2110"},
    **{0x1D4A7: "\u2112", 0x1D4A8: "\u2133", 0x1D4AD: "\u211b", 0x1D4BA: "\u212f"},
    **{0x1D4BC: "\u210a", 0x1D4C4: "\u2134", 0x1D506: "\u212d", 0x1D50B: "\u210c"},
    **{0x1D50C: "\u2111", 0x1D515: "\u211c", 0x1D51D: "\u2128"},
}
_BIG: Final = frozenset(
    f"{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")
)
_ENVIRONMENTS: Final = {
    **{"matrix": ("", ""), "pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "vmatrix": ("|", "|")},
    **{
        "Bmatrix": ("{", "}"),
        "Vmatrix": ("\u2016", "\u2016"),
        "cases": ("{", ""),
        "array": ("", ""),
    },
    **dict.fromkeys(("aligned", "align", "align*", "gathered", "gather", "gather*"), ("", "")),
    **dict.fromkeys(("equation", "equation*", "split"), ("", "")),
}
