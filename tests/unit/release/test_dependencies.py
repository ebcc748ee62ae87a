"""What is installed is what was looked at: locks with hashes, and a bill of materials (SEC-4)."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = (
    *("requirements.lock", "requirements-dev.lock"),
    *("requirements-build.lock", "requirements-pip.lock"),
)
PINNED = re.compile(r"([a-z0-9][a-z0-9._-]*)==([0-9][A-Za-z0-9.!+_-]*)( ; [^\\]+)?")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def locked(name: str) -> dict[tuple[str, str], set[str]]:
    """(package, version) -> hashes. Fails for a line that is not an exact version with hashes."""
    found: dict[tuple[str, str], set[str]] = {}
    for line in (ROOT / name).read_text("utf-8").replace("\\\n", "").splitlines():
        if not line or line.startswith("#"):
            continue
        requirement, *hashes = re.split(r"\s+(?=--hash)", line.strip())
        pinned = PINNED.fullmatch(requirement.strip())
        assert pinned is not None, f"{name}: no exact version: {line[:80]}"
        assert hashes, f"{name}: no hash: {line[:80]}"
        given = [HASH.fullmatch(one) for one in hashes]
        assert all(given), f"{name}: no SHA-256: {line[:80]}"
        found[pinned[1], pinned[2]] = {one[1] for one in given if one is not None}
    return found


@pytest.fixture(scope="module")
def bill() -> dict[str, object]:
    """The bill of materials, made as a release makes it."""
    made = subprocess.run(
        [sys.executable, ".ci/sbom.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return json.loads(made.stdout)


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize("name", LOCKS)
def test_each_line_of_a_lock_has_an_exact_version_and_hashes(name: str) -> None:
    assert locked(name)
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text, "a lock names no index and no address"
    assert "-e " not in text


@pytest.mark.requirement("SEC-4")
def test_the_locks_agree_with_each_other() -> None:
    shipped, tested = locked(LOCKS[0]), locked(LOCKS[1])
    assert shipped.keys() <= tested.keys(), "what is tested is what is shipped"


@pytest.mark.requirement("SEC-4")
def test_every_installation_asks_for_the_hashes() -> None:
    for name, word in (
        ("Dockerfile", r"-m pip .*\binstall\b"),
        ("Makefile", r"\$\(PIP_INSTALL\) "),
    ):
        text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
        parts = [one for line in text.splitlines() for one in line.split("&&")]
        commands = [one for one in parts if re.search(word, one)]
        from_locks = [one for one in commands if ".lock" in one and "-r " in one]
        assert from_locks
        for command in commands:
            if command in from_locks:
                assert "--require-hashes" in command, command
            elif name == "Dockerfile":
                assert "--no-index" in command, f"what is fetched is locked: {command}"
                assert "--no-deps" in command, command


@pytest.mark.requirement("SEC-4")
def test_the_bill_names_each_locked_package_once_with_its_hashes(bill: dict[str, object]) -> None:
    named = Counter((one["name"], one["version"]) for one in bill["components"])
    lock = locked("requirements.lock")
    assert named == Counter(lock.keys())
    for one in bill["components"]:
        (files,) = one["externalReferences"]
        hashes = {each["content"] for each in files["hashes"]}
        assert hashes == lock[one["name"], one["version"]]
        assert one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}"


@pytest.mark.requirement("SEC-4")
def test_the_bill_has_what_cyclonedx_requires(bill: dict[str, object]) -> None:
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    root = bill["metadata"]["component"]
    every = [root, *bill["components"]]
    refs = [one["bom-ref"] for one in every]
    assert len(refs) == len(set(refs))
    for one in every:
        assert one["type"] in ("application", "library")
        assert one["name"]
        assert one["version"]
        for choice in one.get("licenses", ()):
            assert ("expression" in choice) != ("license" in choice)
            assert choice.get("expression") or len(choice["license"]) == 1
        assert "expression" not in one.get("licenses", [{}])[0] or len(one["licenses"]) == 1
        for reference in one.get("externalReferences", ()):
            assert reference["type"] == "distribution"
            assert reference["url"] == one["purl"], "wherever the index is"
            assert {each["alg"] for each in reference["hashes"]} == {"SHA-256"}
    assert {one["ref"] for one in bill["dependencies"]} == set(refs)
    for one in bill["dependencies"]:
        assert set(one["dependsOn"]) <= set(refs) - {root["bom-ref"]}
    direct = bill["dependencies"][0]["dependsOn"]
    assert any(ref.startswith("pkg:pypi/aiohttp@") for ref in direct)


@pytest.mark.requirement("SEC-4")
def test_the_bill_is_the_same_each_time_and_knows_most_licences(bill: dict[str, object]) -> None:
    again = subprocess.run(
        [sys.executable, ".ci/sbom.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert json.loads(again.stdout) == bill
    # Those that are kept for other platforms are not installed here, so nothing is known of them.
    unknown = [one["name"] for one in bill["components"] if "licenses" not in one]
    assert len(unknown) < len(bill["components"]) / 10, unknown


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize("line", ["thing==1.0", "thing>=1.0 --hash=sha256:" + "0" * 64])
def test_a_lock_that_is_not_pinned_makes_no_bill(line: str) -> None:
    script = "import sys; sys.path.insert(0, '.ci'); import sbom; sbom.packages(sys.argv[1])"
    refused = subprocess.run(
        [sys.executable, "-B", "-c", script, line], cwd=ROOT, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "not pinned with a hash" in refused.stderr


@pytest.mark.requirement("SEC-4")
def test_how_to_make_the_bill_and_how_to_audit_is_written_down() -> None:
    page = (ROOT / "docs" / "security-releases.md").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("lock", "sbom", "audit"):
        assert f"make {target}" in page
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    audit = makefile.split("\naudit:", 1)[1].split("\n\n", 1)[0]
    assert "--require-hashes" in audit
    assert "--strict" in audit, "a package that nobody could be asked about is no good news"
    for lock in LOCKS:
        assert lock in audit
