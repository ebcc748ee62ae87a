"""The software bill of materials of a release: CycloneDX 1.6 as JSON, on standard output.

`make sbom` runs it. It reads the lock that the image and `make run` install from, so what it names
is what is shipped: each package with its exact version, package URL and the hashes that an
installation accepts. Licences and dependencies come from the packages' own metadata, where they are
installed; markers keep some for other platforms. The same lock and the same installation give the
same bytes.

It refuses a lock with a line that has no exact version or no hash.
"""

import hashlib
import json
import re
import sys
import tomllib
import uuid
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = "requirements.lock"

EXTRAS = ("postgres", "nats", "speed")
"""Those that the lock is made with; see `make lock`."""

_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>.+))?$"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")
_SHORT = 64
"""A licence field that is longer holds the licence's text, not its name."""


@dataclass
class Package:
    """One line of the lock."""

    name: str
    version: str
    marker: str = ""
    hashes: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def normalised(name: str) -> str:
    """As PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages(lock: str) -> list[Package]:
    """Every package of a lock. Raises ValueError for a line that is not pinned with hashes."""
    found: list[Package] = []
    for line in lock.replace("\\\n", " ").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        requirement, *_ = text.split("--hash", 1)
        pinned = _PINNED.match(requirement.strip())
        hashes = _HASH.findall(text)
        if pinned is None or not hashes:
            raise ValueError(f"not pinned with a hash: {text[:80]}")
        name, marker = normalised(pinned["name"]), pinned["marker"] or ""
        found.append(Package(name, pinned["version"], marker, sorted(hashes)))
    return sorted(found, key=lambda one: (one.name, one.version))


def bill(lock: str, project: dict[str, Any]) -> dict[str, object]:
    """The document for a lock and the `project` table of pyproject.toml."""
    listed = packages(lock)
    by_name = {one.name: one for one in listed}
    root = f"pkg:pypi/{project['name']}@{project['version']}"
    asked = [*project["dependencies"]]
    asked += [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    digest = hashlib.sha256((project["version"] + lock).encode()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": project["name"],
                "version": project["version"],
                "purl": root,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [_component(one) for one in listed],
        "dependencies": [
            {"ref": root, "dependsOn": _refs(asked, by_name)},
            *({"ref": one.purl, "dependsOn": _needs(one, by_name)} for one in listed),
        ],
    }


def _component(package: Package) -> dict[str, object]:
    component: dict[str, object] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": package.purl,
                "comment": "one hash for each file that an installation may take",
                "hashes": [{"alg": "SHA-256", "content": one} for one in package.hashes],
            }
        ],
    }
    licences = _licences(package)
    if licences:
        component["licenses"] = licences
    if package.marker:
        component["scope"] = "optional"
        component["properties"] = [{"name": "python:marker", "value": package.marker}]
    return component


def _installed(package: Package) -> metadata.PackageMetadata | None:
    try:
        found = metadata.metadata(package.name)
    except metadata.PackageNotFoundError:
        return None
    return found if found["Version"] == package.version else None


def _licences(package: Package) -> list[dict[str, object]]:
    found = _installed(package)
    if found is None:
        return []
    if "License-Expression" in found:
        return [{"expression": found["License-Expression"]}]
    named = found.get("License", "")
    if named and "\n" not in named and len(named) <= _SHORT:
        return [{"license": {"name": named}}]
    classifiers = found.get_all("Classifier") or []
    names = [one.rsplit(" :: ", 1)[1] for one in classifiers if one.startswith("License :: ")]
    return [{"license": {"name": name}} for name in sorted(set(names))]


def _needs(package: Package, by_name: dict[str, Package]) -> list[str]:
    found = _installed(package)
    return _refs([] if found is None else found.get_all("Requires-Dist") or [], by_name)


def _refs(requirements: list[str], by_name: dict[str, Package]) -> list[str]:
    """The packages of the lock that these name, those for extras and other platforms too."""
    names = {
        normalised(match.group())
        for line in requirements
        if (match := _REQUIRED.match(line)) is not None
    }
    return sorted(by_name[name].purl for name in names & by_name.keys())


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lock = (ROOT / LOCK).read_text("utf-8")
    json.dump(bill(lock, project), sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
