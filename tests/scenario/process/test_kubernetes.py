"""A container of kubernetes.yaml as a process: its configuration, variables and probes (OPS-9)."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from gateway.cli.client import GatewayClient
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.scenario.process.compose import DEPLOY, image
from tests.scenario.process.program import Place, gateway
from tests.scenario.process.talk import gone
from tests.scenario.process.test_roles import ask, database_url
from tests.scenario.process.test_store_away import until_ready

LIMIT_S = 240.0
TOKEN = "made-up-token"


def manifests() -> dict[str, dict[str, Any]]:
    """The manifests by kind."""
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    return {str(one["kind"]): one for one in yaml.safe_load_all(text)}


def container() -> dict[str, Any]:
    """The container of the Deployment."""
    (one,) = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(one)


def mounted(path: Path) -> dict[str, str]:
    """A folder for each place where the container has a volume, with what stands in it."""
    found = manifests()
    volumes = {
        one["name"]: one for one in found["Deployment"]["spec"]["template"]["spec"]["volumes"]
    }
    folders = {}
    for mount in container()["volumeMounts"]:
        folder = path / mount["name"]
        folder.mkdir()
        folders[mount["mountPath"]] = str(folder)
        volume = volumes[mount["name"]]
        for item in volume.get("secret", {}).get("items", ()):
            (folder / item["path"]).write_text(f"{TOKEN}\n", encoding="utf-8")
        for item in volume.get("configMap", {}).get("items", ()):
            text = found["ConfigMap"]["data"][item["key"]]
            (folder / item["path"]).write_text(text, encoding="utf-8")
    for file in path.glob("*/gatehouse.toml"):
        text = file.read_text(encoding="utf-8")
        text = re.sub(r'(?<=")/[^"]*', lambda found: here(found.group(), folders), text)
        file.write_text(text, encoding="utf-8")
    return folders


def here(value: str, folders: dict[str, str]) -> str:
    """A path of the container on this machine; whatever else it is stays."""
    for place, folder in folders.items():
        if value == place or value.startswith(f"{place}/"):
            return folder + value.removeprefix(place)
    return value


def environment(folders: dict[str, str], database: str) -> dict[str, str]:
    """The image's variables and the manifest's; of the secret only what is not optional."""
    made = {name: value for name, value in image().env.items() if name not in ("PATH", "HOME")}
    for one in container()["env"]:
        if "value" in one:
            made[one["name"]] = one["value"]
        elif not one["valueFrom"]["secretKeyRef"].get("optional"):
            assert one["valueFrom"]["secretKeyRef"]["key"] == "database-url"
            made[one["name"]] = database
    return {name: here(value, folders) for name, value in made.items()}


@pytest.mark.requirement("OPS-9", "OPS-10")
async def test_a_replica_of_the_manifest_answers_its_probes_and_stops_on_a_signal(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    postgres_server()
    async with fail_after(LIMIT_S), database_url() as database:
        place = Place(tmp_path)
        place.variables |= environment(mounted(tmp_path), database)
        ports = {one["name"]: one["containerPort"] for one in container()["ports"]}
        # Of the whole container this alone is not as it stands there: the port may be in use here.
        assert ports == {"http": 8080}
        place.variables["GATEHOUSE_HTTP__PORT"] = "0"
        async with gateway(place, *image().command[3:]) as program:
            url = await program.url()
            listening = json.loads(await program.says("http_listening"))
            assert listening["host"] == "0.0.0.0"
            for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                asked = container()[probe]["httpGet"]
                assert asked["port"] in ports, probe
                assert await ask(url, asked["path"]) == 200, probe
            async with GatewayClient(url, SecretStr(TOKEN)) as client:
                assert (await client.get("/v1/status"))["ready"] is True
                runtime = await client.get("/v1/runtime")
            assert runtime["workspace"] == str(tmp_path / "workspace")
            assert (tmp_path / "workspace" / "AGENTS.md").is_file()
            program.signal(signal.SIGTERM)
            assert await program.ended() == 0
            await gone(url)


@pytest.mark.requirement("OPS-9", "SCALE-1")
async def test_a_pod_of_workers_alone_answers_the_same_probes(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    """As the guide says: one more variable, where the role http runs in other pods."""
    assert "GATEHOUSE_HTTP__HEALTH_PORT" in (DEPLOY / "kubernetes.md").read_text(encoding="utf-8")
    async with fail_after(LIMIT_S), database_url() as database:
        place = Place(tmp_path)
        place.variables |= environment(mounted(tmp_path), database)
        place.variables |= {"GATEHOUSE_HTTP__HEALTH_PORT": "0", "GATEHOUSE_ROLES": "workers,timers"}
        async with gateway(place, *image().command[3:]) as program:
            port = json.loads(await program.says("http_listening"))["port"]
            url = f"http://127.0.0.1:{port}"
            await until_ready(url, ready=True)
            for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                assert await ask(url, container()[probe]["httpGet"]["path"]) == 200, probe
