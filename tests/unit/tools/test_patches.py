"""Patches as text: what is read of them, and where their hunks are placed (TOOL-14)."""

import difflib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.errors import ToolError
from runtime.tools.patches import (
    MAX_FILES,
    MAX_LINES,
    FileChange,
    Hunk,
    occurrences,
    parse,
    patched,
)

pytestmark = pytest.mark.requirement("TOOL-14")
LINES = st.lists(st.sampled_from(["", "a", "b", "c", " d", "-e", "+f", "@@", "--- g"]), max_size=9)


def begun(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def updated(text: str, *lines: str) -> str:
    (change,) = parse(begun("*** Update File: f", *lines))
    return patched(text, change)


def refused(text: str, *lines: str) -> str:
    with pytest.raises(ToolError) as caught:
        updated(text, *lines)
    return str(caught.value)


def test_a_patch_adds_updates_moves_and_deletes() -> None:
    text = begun(
        "*** Add File: new.md",
        "+# New",
        "+",
        "*** Update File: a.md",
        "*** Move to: b.md",
        "@@ def f",
        " one",
        "-two",
        "+2",
        "*** Delete File: my old.md",
    )
    assert parse(text) == (
        FileChange("add", "new.md", content="# New\n\n"),
        FileChange(
            "update",
            "a.md",
            (Hunk(1, ("one", "two"), ("one", "2"), anchors=("def f",)),),
            moved_to="b.md",
        ),
        FileChange("delete", "my old.md"),
    )
    assert parse(text.replace("\n", "\r\n")) == parse(text)


def test_a_diff_of_git_is_read() -> None:
    text = """diff --git a/a.md b/b.md
similarity index 80%
rename from a.md
rename to b.md
index 1..2 100644
--- a/a.md
+++ b/b.md
@@ -1,2 +1,2 @@ section
 one
-two
+2
diff --git a/c.md b/d.md
rename from c.md
rename to d.md
diff --git a/new.md b/new.md
new file mode 100644
--- /dev/null
+++ b/new.md
@@ -0,0 +1 @@
+n
\\ No newline at end of file
diff --git a/none b/none
new file mode 100755
index 0000000..e69de29
diff --git a/no ne b/no ne
deleted file mode 100644
index e69de29..0000000
diff --git a/old.md b/old.md
deleted file mode 100644
--- a/old.md
+++ /dev/null
@@ -1 +0,0 @@
-o
"""
    assert parse(text) == (
        FileChange(
            "update", "a.md", (Hunk(1, ("one", "two"), ("one", "2"), line=1),), moved_to="b.md"
        ),
        FileChange("update", "c.md", moved_to="d.md"),
        FileChange("add", "new.md", content="n"),
        FileChange("add", "none", executable=True),
        FileChange("delete", "no ne", (Hunk(1, line=0),)),
        FileChange("delete", "old.md", (Hunk(1, ("o",), (), line=1),)),
    )


DIFF = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{DIFF}-c\n", "patch, line 6: what stands behind a hunk begins another file"),
        (f"{DIFF}*** Delete File: f\n", "line 6: what stands behind a hunk"),
        (f"{DIFF}rename from f\nrename to g\n", "line 6: what stands behind a hunk"),
        (f"{begun('*** Delete File: a')}\n{begun('*** Delete File: b')}", "line 5: nothing stands"),
        (f"{begun('*** Delete File: a')}x", "line 4: nothing stands behind *** End Patch, not 'x'"),
        ("diff --git a/c b/d\ncopy from c\ncopy to d\n", "line 2: a patch adds, changes, moves"),
        ("diff --git a/c b/d\ncopy to d\n", "line 2: a patch adds, changes, moves"),
        ("diff --git a/c b/c\nnew file mode 120000\n", "line 2: a patch makes and deletes regular"),
        ("diff --git a/c b/c\ndeleted file mode 160000\n", "line 2: a patch makes and deletes"),
        ("diff --git a/c b/c\nindex 1..2 120000\n", "line 2: behind diff --git stands what git"),
        ("diff --git a/c b/c\nfoo\n", "line 2: behind diff --git stands what git writes"),
        ("diff --git a/c b/c\nindex 1..2\n", "line 1: nothing is changed in"),
        ("diff --git a/c b/d\nnew file mode 100644\n", "does not say which file is meant"),
        (
            "diff --git a/c b/c\nnew file mode 100644\nrename from c\nrename to d\n",
            "a file is made",
        ),
        (
            f"diff --git a/f b/f\ndeleted file mode 100644\n{DIFF}",
            "line 1: the head of f says delete, its",
        ),
        (
            f"diff --git a/f b/f\nnew file mode 100644\n{DIFF}",
            "line 1: the head of f says add, its",
        ),
        ("diff --git a/c b/d\nrename from c\nrename to d\n" + DIFF, "line 4: --- and +++ name f"),
        (DIFF.replace("b/f", "b/g"), "line 1: --- and +++ name f and g; a file is moved by rename"),
        (DIFF.replace("a/f", "/dev/null", 1).replace("a/f", ""), "a new file and one hunk"),
        ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", "a new file and one hunk"),
        ('--- "a/\\q"\n+++ "b/\\q"\n', "no quoted name as git writes it"),
        ('--- "a/\\377"\n+++ b/x\n', "no quoted name as git writes it"),
        ('--- "a/x"y\n+++ b/x\n', "no quoted name as git writes it"),
    ],
)
def test_nothing_of_a_patch_is_skipped(text: str, said: str) -> None:
    """A person approves what a card shows of it: all of that happens, or none."""
    with pytest.raises(ToolError) as caught:
        parse(text)
    assert said in str(caught.value)


def test_a_new_file_ends_with_a_line_end_where_the_diff_does_not_say_otherwise() -> None:
    text = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert parse(text)[0].content == "a\nb\n"
    assert parse(f"{text}\\ No newline at end of file\n")[0].content == "a\nb"


def test_names_that_git_quoted_are_read() -> None:
    text = r"""diff --git "a/\303\244 \"1\".md" "b/\303\244 \"1\".md"
deleted file mode 100644
diff --git "a/\303\244" b/a
rename from "\303\244"
rename to a
--- "a/\303\244"
+++ b/a
@@ -1 +1 @@
-x
+y
"""
    assert [change.paths for change in parse(text)] == [('ä "1".md',), ("ä", "a")]


def test_a_time_behind_a_name_is_no_part_of_it() -> None:
    hunk = "@@ -1 +1 @@\n-x\n+y\n"
    for name in ("a b", '"a b"'):
        (change,) = parse(f"--- {name}\t2026-01-02 03:04:05\n+++ {name}\t2026-01-02\n{hunk}")
        assert change.path == "a b"


def test_a_diff_without_prefixes_names_its_files_as_they_are() -> None:
    (change,) = parse("diff --git a/x a/x\nnew file mode 100644\n")
    assert change == FileChange("add", "a/x")


def test_a_file_that_is_deleted_without_lines_is_empty() -> None:
    (change,) = parse("diff --git a/f b/f\ndeleted file mode 100644\n")
    assert patched("", change) == ""
    assert patched("x\n", change) == "x\n"


@pytest.mark.parametrize(
    ("hunk", "before", "after"),
    [
        ("-a\n+b\n\\ No newline at end of file", "a\n", "b"),
        ("-a\n\\ No newline at end of file\n+b", "a", "b\n"),
        ("-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file", "a", "b"),
    ],
)
def test_a_diff_says_whether_the_last_line_ends(hunk: str, before: str, after: str) -> None:
    (change,) = parse(f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n{hunk}\n")
    assert patched(before, change) == after
    with pytest.raises(ToolError, match="not in the file at the end"):
        patched("a\nc\n", change)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it names no file"),
        ("-a\n+b\n", "'-a' begins no file; write it as"),
        ("\n" * MAX_LINES + "x", "patch: 10,001 lines, more than 10,000"),
        (begun(), "it names no file"),
        ("*** Begin Patch\n*** Delete File: a\n", "does not end with *** End Patch"),
        (begun("a"), "patch, line 2: a file begins with"),
        (begun("*** Delete File:  "), "has no name"),
        (begun("*** Add File: a", "no plus"), "patch, line 3: each line of a new file"),
        (begun("*** Update File: a"), "nothing is changed in a"),
        (begun("*** Update File: a", "@@", "x"), "patch, line 4: a line of a hunk begins"),
        (begun("*** Update File: a", "@@", "X"), "patch, line 4: a line of a hunk begins"),
        (begun("*** Update File: a", "@@", "@@ b"), "patch, line 5: a hunk has lines"),
        (begun(*(f"*** Delete File: {n}" for n in range(MAX_FILES + 1))), f"more than {MAX_FILES}"),
        ("--- a/x\nno\n", "patch, line 2: --- is followed by +++, not 'no'"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 0\n", "text of files alone"),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n",
            "patch, line 5: the hunk does not have the lines",
        ),
        ("@@ -1 +1 @@\n-a\n+b\n", "stands below the --- and +++"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "text of files alone"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "text of files alone"),
        ("diff --git a/a b/b\nrename from a\n", "followed by rename to"),
    ],
)
def test_what_is_no_patch_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse(text)
    assert said in str(caught.value)


def test_hunks_are_placed_by_their_lines_from_the_top_down() -> None:
    text = "a\nb\n\nc\nd\n"
    assert updated(text, "@@", " a", "-b", "", "@@", "-d", "+e") == "a\n\nc\ne\n"
    assert "further up" in refused(text, "@@", "-d", "@@", "-a")


def test_lines_that_are_there_twice_need_a_line_above_or_the_end() -> None:
    text = "def f\nx\ndef g\nx\n"
    told = refused(text, "@@", "-x", "+y")
    assert "f, hunk 1: its lines are in the file 2 times (lines 2, 4)" in told
    assert updated(text, "@@def g@@", "-x", "+y") == "def f\nx\ndef g\ny\n"
    assert updated(text, "@@ def g", "-x", "+y") == "def f\nx\ndef g\ny\n"
    assert updated(text, "@@ def f", "-x", "+y") == "def f\ny\ndef g\nx\n"
    assert updated(text, "@@", "-x", "+y", "*** End of File") == "def f\nx\ndef g\ny\n"
    assert "'def h' behind @@ is not in the file" in refused(text, "@@ def h", "-x")


def test_a_diff_says_by_its_line_which_of_two_places_is_meant() -> None:
    (change,) = parse("--- a/f\n+++ b/f\n@@ -4 +4 @@\n-x\n+y\n")
    assert patched("def f\nx\ndef g\nx\n", change) == "def f\nx\ndef g\ny\n"
    assert patched("x\n", change) == "y\n", "lines alone count where they are unique"


def test_what_only_adds_needs_a_place() -> None:
    assert updated("a\nb\n", "@@ a", "+x") == "a\nx\nb\n"
    assert updated("a\n", "@@", "+x", "*** End of File") == "a\nx\n"
    assert updated("", "@@", "+x") == "x\n"
    assert "it only adds" in refused("a\n", "@@", "+x")
    (change,) = parse("--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+x\n")
    assert patched("a\nb\n", change) == "a\nx\nb\n"
    assert patched("a\n", change) == "a\nx\n", "behind the last line"
    (change,) = parse("--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+x\n")
    with pytest.raises(ToolError, match="it only adds"):
        patched("a\n", change)


def test_what_is_not_there_names_the_hunk_and_the_nearest_place() -> None:
    told = refused("a\nb\ndef total(items):\n", "@@", " a", "@@", "-def total(item):")
    assert told.startswith("f, hunk 2: its lines are not in the file; the nearest is at line 3")
    assert "(- in the file, + in the patch)" in told
    assert "-def total(items):\n+def total(item):" in told
    assert "at the end" in refused("a\nb\n", "@@", "-a", "*** End of File")
    two = refused("a\nlet total = 1\nlet other = 2\n", "-let total = 1", "-let others = 2")
    assert "at line 2" in two
    assert "-let other = 2\n+let others = 2" in two
    assert refused("a\n", "-zzz").endswith("not in the file; nothing in it is similar")


def test_line_ends_of_the_file_are_kept() -> None:
    assert updated("a\r\nb\r\n", "@@", "-a", "+x", "+y") == "x\r\ny\r\nb\r\n"
    assert updated("a\nb", "@@", "-a", "+x") == "x\nb"
    assert updated("a\n", "@@", "-a") == ""


@given(old=LINES, new=LINES, context=st.integers(0, 3))
def test_a_diff_that_is_applied_gives_the_other_text(
    old: list[str], new: list[str], context: int
) -> None:
    before = "".join(f"{line}\n" for line in old)
    diff = "\n".join(difflib.unified_diff(old, new, "a/f", "b/f", lineterm="", n=context))
    if not diff:
        return
    (change,) = parse(diff)
    assert patched(before, change) == "".join(f"{line}\n" for line in new)


FEW = st.sampled_from(["", "a", "b"])


@given(lines=st.lists(FEW), wanted=st.lists(FEW, min_size=1, max_size=4), at=st.integers(0, 9))
def test_a_hunk_is_found_wherever_its_lines_stand(
    lines: list[str], wanted: list[str], at: int
) -> None:
    at = min(at, len(lines))
    expected = [i for i in range(at, len(lines)) if lines[i : i + len(wanted)] == wanted]
    assert list(occurrences(lines, wanted, at)) == expected


class Counted(str):
    """A line that counts how often lines are compared."""

    __slots__ = ()
    compared: list[None] = []  # noqa: RUF012 - one count for all

    def __eq__(self, other: object) -> bool:
        self.compared.append(None)
        return str(self) == str(other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("last", ["", "x"])
def test_lines_that_repeat_cost_no_more_than_others(last: str) -> None:
    lines = [Counted("") for _ in range(400)]
    wanted = [*(Counted("") for _ in range(99)), Counted(last)]
    Counted.compared.clear()
    assert len(list(occurrences(lines, wanted, 0))) == (0 if last else 301)
    assert len(Counted.compared) <= 4 * (len(lines) + len(wanted))


@given(st.text(max_size=300))
def test_any_text_is_a_patch_or_an_error(text: str) -> None:
    for whole in (text, begun(text), f"--- a/x{os.linesep}+++ b/x\n{text}"):
        try:
            changes = parse(whole)
        except ToolError:
            continue
        assert all(change.path for change in changes)
