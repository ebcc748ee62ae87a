"""Compose, Kubernetes and the Dockerfile, read as data (OPS-9): what each promises stands in it."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.config import load
from gateway.config_model import Settings
from tests.unit.deploy.support import DEPLOY, ROOT, read_yaml, server_major

NOT_SETTINGS = frozenset({"GATEHOUSE_CONFIG", "GATEHOUSE_HOME"})
CLIENT_MAJORS = {"bullseye": 13, "bookworm": 15, "trixie": 17}
"""The major of `postgresql-client` in a release of Debian (packages.debian.org)."""
TAIL_S = 10
"""Seconds after the grace time: the last replies, and connections that are open."""


def variables(name: str) -> dict[str, str]:
    """What a file of variables sets; those that are commented out as well."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    found = re.findall(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", text, re.MULTILINE)
    assert found
    return dict(found)


def manifests() -> dict[str, dict[str, Any]]:
    """The manifests by kind."""
    return {str(one["kind"]): one for one in read_yaml("kubernetes.yaml")}


def pod() -> dict[str, Any]:
    """What the Deployment makes."""
    return manifests()["Deployment"]["spec"]["template"]["spec"]


def settings_of(set_: Mapping[str, str], home: Path) -> Settings:
    """The settings that these variables make. Raises `ConfigError` for any that is none."""
    return load(environment={**set_, "GATEHOUSE_HOME": str(home)}).settings


def plain(text: str) -> str:
    """A value that a person has filled in."""
    return text or "made-up-test-value"


@pytest.mark.requirement("OPS-9")
def test_compose_runs_two_gateways_on_settings_that_exist(tmp_path: Path) -> None:
    (compose,) = read_yaml("compose.yaml")
    services = compose["services"]
    assert set(services) == {"gateway-1", "gateway-2", "postgres", "nats"}
    for name in ("gateway-1", "gateway-2"):
        one = services[name]
        example = variables("gateway.env.example")
        given = {key: plain(value) for key, value in (example | one["environment"]).items()}
        assert not set(example) & set(one["environment"])
        settings = settings_of(given, tmp_path)
        assert (settings.http.host, settings.http.port) == ("0.0.0.0", 8080)
        assert settings.database.url is not None
        assert settings.database.url.startswith("postgresql+asyncpg://gatehouse:")
        assert settings.bus.url == "nats://nats:4222"
        assert settings.http.admin_token is not None
        assert set(settings.http.public_hosts) == {"gateway-1", "gateway-2"}
        assert one["read_only"] is True
        assert one["user"] == "10001:10001"
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"], "the engine's profile stays"
        assert one["restart"] == "unless-stopped"
        assert any(mount.startswith("/tmp") for mount in one["tmpfs"])
        assert "/readyz" in " ".join(one["healthcheck"]["test"])
        assert f":{settings.http.port}/" in " ".join(one["healthcheck"]["test"])
        assert int(one["stop_grace_period"].rstrip("s")) > settings.shutdown_grace_s + TAIL_S
        for needed in ("postgres", "nats"):
            assert one["depends_on"][needed] == {"condition": "service_healthy"}
        assert {volume.partition(":")[0] for volume in one["volumes"]} <= set(compose["volumes"])
        assert all(port.startswith("127.0.0.1:") for port in one["ports"])
    assert services["gateway-1"]["ports"] != services["gateway-2"]["ports"]


@pytest.mark.requirement("OPS-9")
def test_compose_checks_its_other_services_and_holds_no_secret() -> None:
    (compose,) = read_yaml("compose.yaml")
    for name, one in compose["services"].items():
        assert one["healthcheck"]["test"][0] == "CMD", name
        assert one["read_only"] is True, name
        secret = re.compile(r"TOKEN|PASSWORD|_KEY|DATABASE__URL|SECRET")
        assert not [key for key in one.get("environment", {}) if secret.search(key)], name
    for example in ("gateway.env.example", "postgres.env.example"):
        name = example.removesuffix(".example")
        users = [one for one in compose["services"].values() if one.get("env_file") == name]
        assert users, name
        for key, value in variables(example).items():
            assert not value or "CHANGE-ME" in value, key
    assert "*.env" in (DEPLOY / ".gitignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.requirement("OPS-9")
def test_kubernetes_runs_two_replicas_that_may_write_nothing_but_volumes() -> None:
    found, inside = manifests(), pod()
    assert {"ConfigMap", "Service", "PodDisruptionBudget", "Deployment"} <= set(found)
    assert found["Deployment"]["spec"]["replicas"] == 2
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] == 1
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("PodDisruptionBudget", "Deployment"):
        assert found[kind]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    (container,) = inside["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    security = inside["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 10001)
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    mounts = {one["name"]: one for one in container["volumeMounts"]}
    assert set(mounts) == {one["name"] for one in inside["volumes"]}
    assert {"/data", "/tmp", "/workspace"} <= {one["mountPath"] for one in mounts.values()}
    assert found["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.requirement("OPS-9")
def test_kubernetes_configures_settings_that_exist(tmp_path: Path) -> None:
    """The ConfigMap's file and the variables are read by the program's own reader."""
    found, inside = manifests(), pod()
    tokens = tmp_path / "secrets"
    tokens.mkdir()
    mounted = {one["name"]: one["mountPath"] for one in inside["containers"][0]["volumeMounts"]}
    text = found["ConfigMap"]["data"]["gatehouse.toml"]
    assert mounted["tokens"] in text
    file = tmp_path / "gatehouse.toml"
    file.write_text(text.replace(mounted["tokens"], str(tokens)), encoding="utf-8")
    (volume,) = (one for one in inside["volumes"] if one["name"] == "tokens")
    for item in volume["secret"]["items"]:
        (tokens / item["path"]).write_text("made-up-token\n", encoding="utf-8")
    env = {one["name"]: one for one in inside["containers"][0]["env"]}
    assert env.pop("GATEHOUSE_CONFIG")["value"] == f"{mounted['config']}/gatehouse.toml"
    for name, one in env.items():
        assert one["valueFrom"]["secretKeyRef"]["name"] == "gatehouse", name
    given = dict.fromkeys(env, "made-up-test-value")
    given["GATEHOUSE_DATABASE__URL"] = "postgresql+asyncpg://u:p@postgres/gatehouse"
    settings = load(file, environment={**given, "GATEHOUSE_HOME": str(tmp_path)}).settings
    assert settings.http.host == "0.0.0.0"
    assert settings.http.port == inside["containers"][0]["ports"][0]["containerPort"]
    assert settings.http.admin_token_file == tokens / "admin-tokens"
    assert settings.http.read_only_token_file == tokens / "read-only-tokens"
    assert str(settings.workspace.path) == mounted["workspace"]
    assert inside["terminationGracePeriodSeconds"] > settings.shutdown_grace_s + TAIL_S


def test_kubernetes_names_each_key_of_its_secret_in_the_guide() -> None:
    guide = (DEPLOY / "kubernetes.md").read_text(encoding="utf-8")
    inside = pod()
    keys = {one["valueFrom"]["secretKeyRef"]["key"] for one in inside["containers"][0]["env"][1:]}
    keys |= {
        item["key"]
        for one in inside["volumes"]
        if "secret" in one
        for item in one["secret"]["items"]
    }
    optional = {
        one["valueFrom"]["secretKeyRef"]["key"]
        for one in inside["containers"][0]["env"][1:]
        if one["valueFrom"]["secretKeyRef"].get("optional")
    }
    assert keys - optional == {"database-url", "admin-tokens", "read-only-tokens"}
    for key in keys - optional:
        assert f"--from-literal={key}=" in guide, key


@pytest.mark.requirement("OPS-9")
def test_the_dockerfile_builds_apart_without_root_and_without_secrets() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    stages = re.findall(r"^FROM (.+)$", text, re.MULTILINE)
    assert stages == ["${BASE} AS python", "python AS build", "python"]
    last = text[text.rindex("\nFROM ") :]
    assert re.search(r"^ARG BASE=\S+-slim-[a-z]+$", text, re.MULTILINE)
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert re.findall(r"^VOLUME (.+)$", last, re.MULTILINE) == ["/data"]
    assert "/readyz" in last[last.index("HEALTHCHECK") :]
    assert re.search(r'^ENTRYPOINT \["gatehouse"\]$', last, re.MULTILINE), "it is process 1 itself"
    assert "--require-hashes -r /src/requirements.lock" in text
    assert "requirements-dev" not in text
    for line in re.findall(r"^(?:ENV|ARG) .*$", text, re.MULTILINE):
        assert not re.search(r"TOKEN|PASSWORD|SECRET|_KEY", line), line
    copied = [
        path
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
        for path in line.split()[:-1]
    ]
    assert all((ROOT / path).exists() for path in copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "*" in ignored
    assert {f"!{path}" for path in copied} == {one for one in ignored if one.startswith("!")}


@pytest.mark.requirement("OPS-6", "OPS-9")
def test_the_image_has_the_client_programs_of_the_server_beside_it() -> None:
    """pg_dump refuses a server that is newer, and what it writes may be too new for an older."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    last = text[text.rindex("\nFROM ") :].replace("\\\n", " ")
    (installs,) = re.findall(r"^RUN (apt-get update .*)$", last, re.MULTILINE)
    words = installs.split()
    assert {"postgresql-client", "--no-install-recommends", "--yes"} <= set(words)
    assert installs.endswith("&& rm -rf /var/lib/apt/lists/*")
    assert last.index("postgresql-client") < last.index("\nUSER "), "root installs it"
    base = re.search(r"^ARG BASE=\S+-slim-([a-z]+)$", text, re.MULTILINE)
    assert base is not None
    major = CLIENT_MAJORS[base[1]]
    assert server_major() == major
    for page in (DEPLOY / "kubernetes.md", DEPLOY.parent / "backup.md"):
        named = re.findall(r"PostgreSQL (\d+)", page.read_text(encoding="utf-8"))
        assert named[0] == str(major), page.name


def test_the_folder_has_no_dead_link() -> None:
    for page in DEPLOY.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert Path(os.path.normpath(page.parent / target)).exists(), f"{page.name}: {target}"


def test_the_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    image = pod()["containers"][0]["image"]
    release = project["version"].partition(".dev")[0]
    assert image.endswith(f":{release}")
    assert image in (DEPLOY / "kubernetes.md").read_text(encoding="utf-8")
