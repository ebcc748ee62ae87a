"""SUB-20: which runs are called stuck, how far that goes, and which are not."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.fence import fence
from runtime.domain.tools import ToolCall, ToolResult
from runtime.features.subagents.loop_detection import (
    WINDOW,
    WORDS,
    Signatures,
    Stage,
    Watch,
    signatures,
)

pytestmark = pytest.mark.requirement("SUB-20")


def done(name: str, arguments: object, result: str = "ok") -> tuple[ToolCall, ToolResult]:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id="c", name=name, arguments=raw), ToolResult(
        call_id="c", name=name, content=result
    )


def step(*pairs: tuple[ToolCall, ToolResult]) -> Signatures:
    return signatures([call for call, _ in pairs], [result for _, result in pairs])


def read(path: str, content: str = "the text") -> tuple[ToolCall, ToolResult]:
    return done("read_file", {"path": path}, content)


def stages(steps: Sequence[Signatures]) -> list[Stage]:
    watch, seen = Watch(), []
    for one in steps:
        watch = watch.after(one)
        seen.append(watch.stage)
    return seen


def test_the_same_call_again_and_again_goes_through_every_stage() -> None:
    same = step(read("a.md"))
    assert stages([same] * 6) == [
        Stage.CLEAR,
        Stage.CLEAR,
        Stage.NUDGED,
        Stage.FINAL_NOTICE,
        Stage.FORCED,
        Stage.FORCED,
    ]


def test_two_calls_in_alternation_are_a_circle_too() -> None:
    there, back = step(read("a.md")), step(read("b.md"))
    assert stages([there, back] * 4) == [
        Stage.CLEAR,
        Stage.CLEAR,
        Stage.CLEAR,
        Stage.CLEAR,
        Stage.NUDGED,
        Stage.FINAL_NOTICE,
        Stage.FORCED,
        Stage.FORCED,
    ]


def test_the_same_text_without_a_tool_is_a_repeat() -> None:
    said = signatures([], [], "I am looking into it.")
    assert stages([said] * 5)[-1] is Stage.FORCED
    assert signatures([], [], "  I am looking into it.\n") == said
    assert signatures([], [], " ") == frozenset()


def test_several_calls_of_one_step_that_come_back_together() -> None:
    wide = step(*(read(f"{number}.md") for number in range(12)))
    assert stages([wide] * 3)[-1] is Stage.NUDGED


def test_three_different_files_in_one_step_are_work() -> None:
    assert stages([step(read("a.md"), read("b.md"), read("c.md"))]) == [Stage.CLEAR]


def test_eight_different_reads_are_work() -> None:
    assert set(stages([step(read(f"{number}.md")) for number in range(8)])) == {Stage.CLEAR}


def test_asking_a_task_whose_output_changes_is_work() -> None:
    polls = [step(done("subagents", {"action": "output"}, f"{n} of 20")) for n in range(20)]
    assert set(stages(polls)) == {Stage.CLEAR}


def test_asking_a_task_whose_output_stays_is_a_circle() -> None:
    poll = step(done("subagents", {"action": "output"}, "not_ready"))
    assert stages([poll] * 5)[-1] is Stage.FORCED


def test_long_commands_that_differ_late_are_different() -> None:
    long = "echo " + "x" * 20_000
    assert set(stages([step(done("exec", {"command": f"{long}{n}"})) for n in range(9)])) == {
        Stage.CLEAR
    }


def test_how_long_a_command_took_does_not_hide_a_repeat() -> None:
    took = [f"1 failed\n[exit code 1, {seconds} s]" for seconds in ("0.1", "12.7", "3.0")]
    assert (
        stages([step(done("exec", {"command": "make"}, one)) for one in took])[-1] is Stage.NUDGED
    )
    codes = [f"1 failed\n[exit code {code}, 0.1 s]" for code in range(9)]
    assert set(stages([step(done("exec", {"command": "make"}, one)) for one in codes])) == {
        Stage.CLEAR
    }


def test_the_label_of_a_fence_does_not_hide_a_repeat() -> None:
    took = [fence(f"same\n[exit code 0, {seconds} s]", "exec") for seconds in ("0.1", "0.2", "0.3")]
    assert len(set(took)) == 3
    assert stages([step(done("exec", "{}", one)) for one in took])[-1] is Stage.NUDGED


def test_where_the_whole_of_an_output_is_kept_does_not_hide_a_repeat() -> None:
    def long(call_id: str, tail: str) -> tuple[ToolCall, ToolResult]:
        path = f".gatehouse/outputs/s/r/{call_id}.txt"
        content = (
            f"head\n[... 9 of 99 bytes left out here ...]\n{tail}\n[9; all of it is in {path}]"
        )
        call = ToolCall(id=call_id, name="exec", arguments="{}")
        return call, ToolResult(
            call_id=call_id, name="exec", content=content, whole_output_path=f"/w/{path}"
        )

    assert stages([step(long(f"c{n}", "end")) for n in range(3)])[-1] is Stage.NUDGED
    assert set(stages([step(long(f"c{n}", f"end {n}")) for n in range(9)])) == {Stage.CLEAR}


def test_long_results_that_differ_late_are_different() -> None:
    long = "y" * 100_000
    assert set(
        stages([step(done("exec", {"command": "make"}, f"{long}{n}")) for n in range(9)])
    ) == {Stage.CLEAR}


def test_order_and_spacing_of_arguments_do_not_hide_a_repeat() -> None:
    calls = ['{"path": "a", "limit": 5}', '{"limit":5,"path":"a"}', '{ "path":"a","limit" : 5 }']
    assert stages([step(done("read_file", raw)) for raw in calls])[-1] is Stage.NUDGED


def test_what_is_no_json_repeats_too() -> None:
    assert stages([step(done("exec", "{broken"))] * 3)[-1] is Stage.NUDGED


def test_parts_do_not_run_into_each_other() -> None:
    assert step(done("a", '"b"', "c")) != step(done("a", '"bc"', ""))
    assert step(done("ab", "1")) != step(done("a", "b1"))


def test_a_failure_and_a_success_of_one_call_differ() -> None:
    call, fine = read("a.md")
    failed = fine.model_copy(update={"status": "error"})
    assert signatures([call], [fine]) != signatures([call], [failed])


def test_two_steps_on_new_ground_take_everything_back() -> None:
    same = step(read("a.md"))
    assert stages([same] * 4 + [step(read("b.md")), step(read("c.md"))])[-1] is Stage.CLEAR


def test_one_step_on_new_ground_takes_nothing_back() -> None:
    same, other = step(read("a.md")), step(read("b.md"))
    assert stages([same] * 4 + [other, same])[-1] is Stage.FORCED


def test_a_step_that_mixes_old_and_new_is_not_new_ground() -> None:
    same = read("a.md")
    steps = [step(same)] * 3 + [step(same, read(f"{n}.md")) for n in range(2)]
    assert stages(steps)[-1] is Stage.FORCED


def test_what_left_the_window_counts_no_more() -> None:
    same = step(read("a.md"))
    fresh = [step(read(f"{number}.md")) for number in range(WINDOW)]
    assert stages([same, same, *fresh, same])[-1] is Stage.CLEAR
    near = fresh[: WINDOW - 3]
    assert stages([same, same, *near, same])[-1] is Stage.NUDGED


def test_there_are_words_for_every_stage_that_goes_on() -> None:
    assert set(WORDS) == {Stage.NUDGED, Stage.FINAL_NOTICE}
    assert all(words.strip() for words in WORDS.values())


@given(st.lists(st.integers(0, 5), max_size=40))
def test_a_run_taken_up_in_the_middle_is_judged_the_same(places: list[int]) -> None:
    steps = [step(read(f"{place}.md")) for place in places]
    watch = Watch()
    for one in steps:
        watch = watch.after(one)
    assert Watch.over(steps) == watch
    assert len(watch.steps) <= WINDOW


@given(st.lists(st.integers(0, 3), max_size=30))
def test_nothing_is_called_stuck_without_three_equal_steps_in_the_window(places: list[int]) -> None:
    seen = stages([step(read(f"{place}.md")) for place in places])
    for number, (before, after) in enumerate(itertools.pairwise([Stage.CLEAR, *seen])):
        window = places[max(0, number - WINDOW + 1) : number + 1]
        if after > before:
            assert after == before + 1
            assert window.count(places[number]) >= 3
        elif window.count(places[number]) >= 3:
            assert after is Stage.FORCED
