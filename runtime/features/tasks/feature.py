"""The feature of tasks: what a session has to do, and commands in the background."""

from pathlib import Path
from typing import Final

from runtime.domain.errors import ToolError
from runtime.engine.feature import Feature, FeatureParts, FeatureServices, FeatureWorker
from runtime.features.tasks.commands import TASKS
from runtime.features.tasks.shell_tasks import HolderServices, ShellTasks
from runtime.features.tasks.tools import task_tools
from runtime.tools.builtin.shell import BackgroundCommand

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PROCESSES: Final = Path("/proc/self/ns/pid")


class _Starts:
    """Leads from the tool, which is made first, to what holds the commands of the process."""

    def __init__(self) -> None:
        self.holder: ShellTasks | None = None

    async def start(self, begun: BackgroundCommand) -> str:
        if self.holder is None:
            raise ToolError("background: this process runs no commands in the background")
        return await self.holder.start(begun)


def tasking() -> Feature:
    """The feature for one process."""
    starts = _Starts()

    def parts(services: FeatureServices) -> FeatureParts:
        if services.sandbox is None:
            return FeatureParts()
        holder = ShellTasks(
            HolderServices(
                units=services.units,
                clock=services.clock,
                looks=services.looks,
                sandbox=services.sandbox,
                workspace=services.workspace.root,
                worker=services.worker,
                host=_host(),
                clean=services.redact,
                begun=services.begun,
            )
        )
        starts.holder = holder
        return FeatureParts(
            workers=(
                FeatureWorker("task signals", holder.listen),
                FeatureWorker("tasks", holder.keep),
            )
        )

    return Feature(
        name="tasks", tools=task_tools, parts=parts, commands=(TASKS,), background=starts
    )


def _host() -> str:
    """What names the processes that this one can see: another boot, or another namespace of
    processes, sees others."""
    try:
        return f"{_BOOT.read_text().strip()}:{_PROCESSES.readlink()}"
    except OSError:
        return ""
