"""What a program may ask for in a subagent that it starts by the API (AGT-3). Pure.

What cannot be honoured is refused by its name, and nothing is left out without a word.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from runtime.domain.decisions import PermissionMode
from runtime.domain.errors import InvalidInput
from runtime.domain.fence import fence
from runtime.domain.routes import Generation, RoutePolicy
from runtime.domain.value import Value
from runtime.features.subagents.rows.agents import Retention
from runtime.features.subagents.spawn.spawn_arguments import (
    Folder,
    Name,
    Patterns,
    Problem,
    RequestKey,
    SpawnArguments,
    SpendAsked,
    TypeName,
)
from runtime.intake.assets import AssetUse
from runtime.intake.input_items import (
    MOST_ITEMS,
    AssetId,
    AssetReference,
    InlineAsset,
    InputItem,
    TextItem,
    items_of,
)
from runtime.intake.submissions import Item

MOST_TEXT: Final = 100_000
SAID: Final = "What the agent that you work for said last:"


def _shown(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


Words = Annotated[str, Field(max_length=MOST_TEXT), AfterValidator(_shown)]
Word = Annotated[str, Field(max_length=200), AfterValidator(_shown)]
Ids = Annotated[tuple[Word, ...], Field(max_length=50)]


class ToolSurface(Value):
    """Patterns of the names of tools. Without an ``allowlist`` there is no further limit; an empty
    one allows nothing."""

    allowlist: Patterns | None = None
    denylist: Patterns = ()


class CapabilityScope(Value):
    """What the agent may reach of what its parent may. What is left out is as its parent has it;
    an empty list is nothing at all."""

    paths: Patterns | None = None
    network: Patterns | None = None
    budget: SpendAsked | None = None


class CredentialScope(Value):
    """Names or patterns of the connectors and tool servers whose credentials the agent may use, of
    those that its parent may. Without ``names`` there is no further limit; an empty list allows
    none. Which models there are is not a matter of it."""

    names: Patterns | None = None


class ForkContext(Value):
    """What the agent is told of its parent, how its own instructions are made, and where it works.

    ``inherited_tool_call_ids`` are calls of the parent's conversation, which it is shown with their
    results. ``isolation``: ``worktree`` gives it a git worktree of its own. ``worktree_path`` is a
    folder of those that the parent works in; the agent reaches no others.
    """

    parent_assistant_message: Words = ""
    inherited_tool_call_ids: Ids = ()
    system_prompt: Words = ""
    prompt_merge_mode: Literal["replace", "append"] = "append"
    team_name: Word | None = None
    isolation: Literal["full", "selective", "shared", "worktree"] | None = None
    tool_surface: ToolSurface | None = None
    worktree_path: Folder | None = None

    @property
    def conflict(self) -> str:
        """What does not fit together; empty where all does."""
        if self.isolation == "worktree" and self.worktree_path is not None:
            return "fork_context: a new worktree and worktree_path exclude each other; give one"
        return ""


FileItem = Annotated[InlineAsset | AssetReference, Field(discriminator="type")]


class Subtask(Value):
    """What the agent is to do: ``content`` with ``attachments``, or ``prompt`` with the uploads of
    ``asset_ids``, or ``input_items`` in the order in which they are meant. ``name`` is what it is
    called in its tree, ``profile`` its type."""

    name: Name
    description: Word
    profile: TypeName = "default"
    content: Words | None = None
    attachments: tuple[FileItem, ...] = Field(default=(), max_length=MOST_ITEMS)
    prompt: Words | None = None
    asset_ids: tuple[AssetId, ...] = Field(default=(), max_length=MOST_ITEMS)
    input_items: tuple[InputItem, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_ITEMS
    )

    @model_validator(mode="after")
    def _one_task(self) -> "Subtask":
        given = (self.content, self.prompt, self.input_items)
        if sum(one is not None for one in given) != 1:
            raise ValueError("give one of content, prompt and input_items")
        if self.attachments and self.content is None:
            raise ValueError("attachments belong to content; give content, or asset_ids to prompt")
        if self.asset_ids and self.prompt is None:
            raise ValueError("asset_ids belong to prompt; give prompt, or attachments to content")
        items = self.input_items or ()
        texts = [one.text for one in items if isinstance(one, TextItem)]
        words = self.content or self.prompt or "".join(texts)
        if not words.strip():
            raise ValueError("say what the agent is to do")
        if len(words) > MOST_TEXT:
            raise ValueError(f"must have at most {MOST_TEXT:,} characters of text together")
        return self

    def items(self) -> tuple[Item, ...]:
        """All its words and files in their order. Raises `InvalidInput`."""
        if self.content is not None:
            return (self.content, *items_of(self.attachments, "subtask.attachments"))
        if self.prompt is not None:
            uses = [
                AssetUse(one, field=f"subtask.asset_ids.{place}")
                for place, one in enumerate(self.asset_ids)
            ]
            return (self.prompt, *uses)
        return items_of(self.input_items or (), "subtask.input_items")


class SpawnSidechainRequest(Value):
    """A subagent that works in the background for the agent of the path, with no more rights than
    that one has."""

    session_id: Word | None = Field(default=None, description="the parent's, if it is given at all")
    thread_id: Word | None = Field(
        default=None,
        description="a thread in which the parent was asked: what the agent asks and gives goes "
        "there, with the rights of who asked last in it",
    )
    route_policy: RoutePolicy | None = None
    permission_mode: PermissionMode | None = None
    retention: Retention = "retain"
    nickname: Annotated[str, Field(max_length=80), AfterValidator(_shown)] = ""
    spawn_request_id: RequestKey | None = None
    fork_context: ForkContext | None = None
    tool_surface: ToolSurface | None = None
    capability_scope: CapabilityScope | None = None
    credential_scope: CredentialScope | None = None
    subtask: Subtask

    @property
    def fork(self) -> ForkContext:
        """The fork context; an empty one where none is given."""
        return self.fork_context or ForkContext()

    @property
    def conflict(self) -> str:
        """What does not fit together; empty where all does."""
        inner = self.fork.tool_surface
        if inner is not None and self.tool_surface is not None and inner != self.tool_surface:
            return "tool_surface: it and that of fork_context are different; give one of them"
        route = "" if self.route_policy is None else self.route_policy.conflict
        return f"route_policy.{route}" if route else self.fork.conflict

    @property
    def generation(self) -> Generation | None:
        """How its model is to write; None where nothing is asked."""
        return None if self.route_policy is None else self.route_policy.generation

    @property
    def secrets(self) -> tuple[str, ...] | None:
        """The names of credentials that it may have; None asks nothing of them."""
        return None if self.credential_scope is None else self.credential_scope.names

    def task(self, text: str) -> str:
        """What the agent is told to do: its task as `text`, and what its parent said. Raises
        `InvalidInput` where that is too long."""
        said, field = self.fork.parent_assistant_message, "subtask"
        if said.strip():
            text = f"{text}\n\n{SAID}\n{fence(said, 'the parent')}"
            field = "fork_context.parent_assistant_message"
        if len(text) > MOST_TEXT:
            # Cut off, a fence would have no end.
            rule = (
                f"must have at most {MOST_TEXT:,} characters together with the task and its files"
            )
            raise InvalidInput(field, rule)
        return text

    def arguments(self, text: str) -> SpawnArguments:
        """The same as a spawn in the background, whose task is told in `text`. Raises
        `InvalidInput`."""
        fork = self.fork
        tools = self.tool_surface or fork.tool_surface or ToolSurface()
        scope = self.capability_scope or CapabilityScope()
        apart = fork.isolation == "worktree"
        return SpawnArguments(
            task=self.task(text),
            type=self.subtask.profile,
            mode="background",
            id=self.subtask.name,
            label=self.nickname,
            description=self.subtask.description,
            retention=self.retention,
            spawn_request_id=self.spawn_request_id,
            model=None if self.route_policy is None else self.route_policy.name,
            isolation=None if fork.isolation == "worktree" else fork.isolation,
            workspace="worktree" if apart else fork.worktree_path,
            budget=scope.budget,
            permission_mode=self.permission_mode,
            allowed_tools=tools.allowlist,
            denied_tools=tools.denylist,
            paths=scope.paths,
            network=scope.network,
        )

    def prompt(self, own: str) -> str:
        """The instructions of the agent, where its type has its `own`."""
        fork = self.fork
        added = fork.system_prompt.strip()
        if not added or fork.prompt_merge_mode == "replace":
            return added or own
        return f"{own}\n\n{added}" if own else added


_FIELDS: Final = {
    "allowed_tools": "tool_surface.allowlist",
    "denied_tools": "tool_surface.denylist",
    "model": "route_policy.model",
    "budget": "capability_scope.budget",
    "paths": "capability_scope.paths",
    "network": "capability_scope.network",
    "secrets": "credential_scope.names",
    "task": "subtask",
    "type": "subtask.profile",
    "id": "subtask.name",
}
_WIDER: Final = "wider on the axis "


def field_of(problem: Problem, asked: SpawnSidechainRequest) -> str:
    """What the field of a problem is called in a request."""
    if problem.field != "workspace":
        return _FIELDS.get(problem.field, problem.field)
    if asked.fork.worktree_path is not None:
        return "fork_context.worktree_path"
    # Where the request says nothing of it, its type wants a worktree.
    return "fork_context.isolation" if asked.fork.isolation else "subtask.profile"


def widens(problem: Problem) -> bool:
    """Whether a problem is that the request asks for more than the parent has."""
    return problem.rule.startswith(_WIDER)
