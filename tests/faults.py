"""Faults put into the code, one at a time, each with a test that must then fail.

    python tests/faults.py            # all of them, some minutes
    python tests/faults.py restore    # those whose name holds a word

The tree is copied to a temporary folder; this one is left alone. Adding a fault is adding a row.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent.parent
LEFT_OUT = (".git", ".venv", "build", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
FAILED = 1
"""pytest's exit code when tests ran and some failed; any other says nothing about the fault."""


@dataclass(frozen=True)
class Fault:
    """Replace a text in one file by another, and this test must then fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


WALL, JUDGE = "autograde/sandbox/wall.py", "autograde/rubric/judge.py"
RESTORE, SANITISE = "autograde/grading/reading/restore.py", "autograde/grading/sanitise.py"
JOB = "autograde/grading/running/job.py"
COORDINATOR, BOOK = "autograde/grading/coordinator.py", "autograde/grading/gradebook.py"
ARCHIVES, MERGE = "autograde/lms/archives.py", "autograde/workspace/merge.py"

FAULTS = [
    # what is right
    Fault(
        "a tolerance ten times too wide", "autograde/rubric/kinds.py",
        "if found.distance > tolerance:", "if found.distance > 10 * tolerance:",
        "tests/test_judge.py::test_a_tolerance_is_a_limit",
    ),
    Fault(
        "a claim counts alone", JUDGE,
        "vouched = trusted or _is_vouched(", "vouched = True or _is_vouched(",
        "tests/test_claims.py::test_claims_count_only_beside_a_right_line_that_computes",
    ),
    Fault(
        "an argument handed back makes claims count", JUDGE,
        "no_claim and not all(map(is_given, line.cases))", "no_claim",
        "tests/test_claims.py -k cannot_vouch",
    ),
    Fault(
        "a tensor may have any shape", "autograde/values/tensors.py",
        "if prod(filter(None, shape)) > MAX_ENTRIES:", "if False:",
        "tests/test_packing.py -k bad_bytes",
    ),
    Fault(
        "a misconception that explains nothing is named", "autograde/grading/verdicts.py",
        "if wrong.intersection(each.lines))", ")",
        "tests/test_judging.py -k explains_no_wrong_line",
    ),
    Fault(
        "other inputs are taken", JUDGE,
        "SAME_INPUTS = 1e-6", "SAME_INPUTS = float('inf')",
        "tests/test_judge.py::test_other_inputs_are_no_fault_of_the_answer",
    ),
    Fault(
        "a line may be recorded twice", JUDGE,
        "if len({line.name for line in recording.lines}) < len(recording.lines):", "if False:",
        "tests/test_judge.py::test_a_doubled_line_counts_nothing",
    ),
    Fault(
        "what is forbidden costs its line alone", JUDGE,
        "0.0 if banned or f is not None", "0.0 if f is not None",
        "tests/test_rubric.py",
    ),
    Fault(
        "nan is as good as a number", "autograde/values/numbers.py",
        "nan_to_num(apart, nan=inf", "nan_to_num(apart, nan=0.0",
        "tests/test_judge.py",
    ),
    Fault(
        "a dtype does not matter", "autograde/values/numbers.py",
        "if not same_type(got, expected):", "if False:",
        "tests/test_judge.py",
    ),
    Fault(
        "arguments may be changed", "autograde/rubric/probes/recorder.py",
        "if apart(after, before).distance == 0 and _types(after) == _types(before):", "if True:",
        "tests/test_judge.py::test_a_changed_argument_costs_its_line_alone",
    ),
    Fault(
        "an argument may take another dtype", "autograde/rubric/probes/recorder.py",
        " and _types(after) == _types(before):", ":",
        "tests/test_probes.py::test_an_argument_of_another_dtype_has_changed",
    ),
    Fault(
        "an answer may switch gradients off for all", "autograde/rubric/probes/recorder.py",
        "with forked, torch.enable_grad():", "with forked:",
        "tests/test_probes.py::test_gradients_that_an_answer_switched_off_are_on_for_the_next_call",
    ),
    Fault(
        "a gradient that is missing is right", "autograde/rubric/kinds.py",
        "if value is None and right is not None:",
        "if value is None:\n                continue\n            if False:",
        "tests/test_judge.py::test_every_argument_gets_its_gradient",
    ),
    Fault(
        "a misconception of another size is named", "autograde/rubric/misconceptions.py",
        "near = max(far, off) <= max(tolerance, ALIKE * min(far, off))", "near = True",
        "tests/test_misconceptions.py::test_an_error_of_another_size_is_another_mistake",
    ),
    Fault(
        "an answer may wrap the package's code", "autograde/rubric/probes/recorder.py",
        "self._borrowed.noticed(args) if look", "nullcontext() if look",
        "tests/test_rubric.py -k packages_code",
    ),
    Fault(
        "only the line of what was borrowed fails", "autograde/rubric/probes/recorder.py",
        "            self._borrowed.refuse()\n", "",
        "tests/test_rubric.py -k packages_code",
    ),
    Fault(
        "lines that watch may carry every point", "autograde/authoring/check.py",
        "MOST_WATCHED = 0.2", "MOST_WATCHED = 1.0",
        "tests/test_authoring.py -k carry_a_fifth",
    ),
    Fault(
        "two recordings count as one", "autograde/grading/verdicts.py",
        "if len(found) > 1:", "if False:",
        "tests/test_judging.py",
    ),
    Fault(
        "every submission has the same seed", JOB,
        "json.dumps([lesson, seen])", "json.dumps([lesson])",
        "tests/test_verdicts.py::test_every_submission_has_a_seed_of_its_own_and_keeps_it",
    ),
    Fault(
        "a seed does not say which cells are run", JOB,
        "json.dumps([self.cells, files])", '"\\0".join(c[1] for c in self.cells) + str(files)',
        "tests/test_verdicts.py -k tell_apart",
    ),
    Fault(
        "a second notebook changes the seed", JOB,
        'if not n.endswith(".ipynb") and n', 'if n',
        "tests/test_running.py -k nbgraders_own_commands",
    ),
    Fault(
        "a wrong variant may pass", "autograde/authoring/check.py",
        "if least.margin >= least.needed:", "if True:",
        "tests/test_authoring.py -k told_apart",
    ),
    # what is run
    Fault(
        "cells that an answer needs are left out", JOB,
        "    if any(names.bound & graded for names in own.values()):\n        return set()\n", "",
        "tests/test_needed.py",
    ),
    Fault(
        "a cell that the student copied is left out", JOB,
        "left[text] -= 1", "pass",
        "tests/test_needed.py",
    ),
    # what is restored
    Fault(
        "a restore forgets deleted cells", RESTORE,
        "at[name], then = nbformat.from_dict(original), ORIGINAL",
        "at[name], then = nbformat.v4.new_code_cell(), ORIGINAL",
        "tests/test_restore.py",
    ),
    Fault(
        "a changed rubric stays", RESTORE,
        "        cell.source = original.source\n", "",
        "tests/test_restore.py",
    ),
    Fault(
        "of a doubled cell the first counts", RESTORE,
        "for cell in reversed(record.nb.cells):", "for cell in record.nb.cells:",
        "tests/test_restore.py",
    ),
    Fault(
        "a deleted answer comes back as the stub", RESTORE,
        'at[name].source, then = "", ', "then = ",
        "tests/test_restore.py",
    ),
    # the wall
    Fault(
        "a kernel without a network of its own", "autograde/sandbox/inside/namespaces.py",
        "system.NEW_IPC | system.NEW_NET |", "system.NEW_IPC |",
        "tests/test_wall.py -k test_it_keeps_out",
    ),
    Fault(
        "a kernel without Landlock", "autograde/sandbox/inside/confine.py",
        "    _restrict_files()\n", "",
        "tests/test_wall.py -k test_it_keeps_out",
    ),
    Fault(
        "a kernel without a control group", "autograde/sandbox/control_groups.py",
        "if (around := place()) is None:", "if True:",
        "tests/test_wall.py -k 'test_a_group or test_a_kernel'",
    ),
    Fault(
        "nobody enters a control group", "autograde/sandbox/control_groups.py",
        "yield [file.fileno()]", "yield [os.open(os.devnull, os.O_WRONLY)]",
        "tests/test_wall.py -k joins",
    ),
    Fault(
        "a wall without its network namespace", WALL,  # each kernel has one of its own besides
        '"ipc", "pid", "net", "uts"', '"ipc", "pid", "uts"',
        "tests/test_wall.py -k test_a_kernel",
    ),
    Fault(
        "a wall that passes the environment on", WALL,
        '"--clearenv", ', "",
        "tests/test_wall.py -k says",
    ),
    Fault(
        "a wall that keeps the model out", WALL,
        'path.rglob("*.*")', 'path.rglob("*.py")',
        "tests/test_wall.py -k says",
    ),
    Fault(
        "a kernel without a filter of system calls", "autograde/sandbox/inside/confine.py",
        "    _filter_calls()\n", "",
        "tests/test_wall.py -k keeps_out",
    ),
    Fault(
        "a kernel without limits for processes", "autograde/sandbox/inside/confine.py",
        "    _limit(resource.RLIMIT_NPROC, limits.processes)\n", "",
        "tests/test_wall.py -k says",
    ),
    Fault(
        "a process hides its page tables by its name", "autograde/sandbox/inside/supervisor.py",
        'partition("\\nVmPTE:")', 'partition("VmPTE:")',
        "tests/test_wall.py -k 'page and tables'",
    ),
    Fault(
        "a kernel makes Linux forget a file", "autograde/sandbox/inside/confine.py",
        "    yield FADVISE, 0\n", "",
        "tests/test_wall.py -k says",
    ),
    # pages
    Fault(
        "a panel is dark on dark", "autograde/rubric/panel.py",
        'TEXT, PAGE = "var(--jp-content-font-color1, #1b1b1b)"', 'TEXT, PAGE = "#1b1b1b"',
        "tests/browser/test_accessibility.py::test_panels_in_jupyterlab",
    ),
    Fault(
        "a page lets a script through", SANITISE,
        "STUDENTS.clean(html)", "html",
        "tests/test_hostile_texts.py -k found_by_the_page",
    ),
    Fault(
        "a student's text keeps its classes", SANITISE,
        'attributes={"*": set(), ', 'attributes={"*": {"class"}, ',
        "tests/test_hostile_texts.py -k found_by_the_page",
    ),
    Fault(
        "formulas make links", SANITISE,
        'MATH_THAT_ACTS.sub(r" \\1", ', 'str(',
        "tests/test_hostile_texts.py -k formulas",
    ),
    Fault(
        "a panel shows markup", "autograde/values/text.py",
        'r"<code>\\1</code>", escape(text))', 'r"<code>\\1</code>", text)',
        "tests/test_judge.py::test_panel_escapes_what_the_student_wrote",
    ),
    Fault(
        "a picture of any size is shown", "autograde/grading/running/outputs.py",
        "width * height <= LIMITS.picture_pixels", "width * height",
        "tests/test_hostile.py -k room",
    ),
    Fault(
        "a cell of a table may be a formula", "autograde/lms/spreadsheet.py",
        "value.startswith(STARTS_A_FORMULA)", "value.startswith('=')",
        "tests/test_verdicts.py -k formula",
    ),
    Fault(
        "a link is a link", SANITISE,
        "    def link(self", "    def no_link(self",
        "tests/test_hostile_texts.py -k link",
    ),
    Fault(
        "a reference breaks a line in a text", SANITISE,
        "readable(STUDENTS.clean(html))", "STUDENTS.clean(html)",
        "tests/test_hostile_texts.py -k parsed_again",
    ),
    Fault(
        "a character has any number of marks", "autograde/values/text.py",
        "if marks <= MOST_MARKS:", "if True:",
        "tests/test_hostile_texts.py -k few_marks",
    ),
    Fault(
        "a long text is formatted", SANITISE,
        "min(room, LIMITS.markdown_chars)", "len(cell.source)",
        "tests/test_hostile_texts.py -k texts_as_long",
    ),
    Fault(
        "any code is coloured", SANITISE,
        "sum(sizes) > LIMITS.all_coloured_chars", "False",
        "tests/test_hostile_texts.py -k code_as_long",
    ),
    Fault(
        "dates in headers are read", "autograde/grading/running/notebook_client.py",
        "if isinstance(read.get(key), str)}", "} | read",
        "tests/test_jobs.py -k dates",
    ),
    Fault(
        "a student's page lies beside the feedback", COORDINATOR,
        "if n in ADDRESS}", "}",
        "tests/test_running.py -k students_own",
    ),
    Fault(
        "parts of a message fill the worker", "autograde/grading/running/notebook_client.py",
        "if _resident_bytes() > self._most:", "if False:",
        "tests/test_jobs.py -k many_parts",
    ),
    Fault(
        "feedback without an address stops the others", "autograde/lms/exchange.py",
        "        self.coursedir.student_id_exclude = ", "        _ = ",
        "tests/test_exchange.py -k addressed",
    ),
    Fault(
        "a link in the exchange is followed", "autograde/lms/plain_copy.py",
        "os.O_RDONLY | os.O_NOFOLLOW |", "os.O_RDONLY |",
        "tests/test_exchange.py -k after_the_check",
    ),
    Fault(
        "anybody submits for anybody", "autograde/lms/exchange.py",
        "if self.check_owner and os.lstat(path)", "if False and os.lstat(path)",
        "tests/test_exchange.py -k another_students_name",
    ),
    Fault(
        "one submission stops the collection", "autograde/lms/exchange.py",
        "except (NotPlain, OSError, RuntimeError)", "except NotImplementedError",
        "tests/test_exchange.py -k 'plain_files or its_student_alone'",
    ),
    # the gradebook
    Fault(
        "a graded submission is graded twice", COORDINATOR,
        "        state.keep_entry(submission.place, entry)\n", "",
        "tests/test_running.py -k only_what_changed",
    ),
    Fault(
        "a score in the gradebook that was changed stays", COORDINATOR,
        "sorted(marks.automatic.items())", "()",
        "tests/test_running.py -k only_what_changed",
    ),
    Fault(
        "a score by hand wants no second look", BOOK,
        "grade.needs_manual_grade = bool(changed or grade.needs_manual_grade)",
        "grade.needs_manual_grade = False",
        "tests/test_running.py -k by_hand",
    ),
    Fault(
        "lateness costs nothing", BOOK,
        "if submission.total_seconds_late > 0:", "if False:",
        "tests/test_running.py -k late",
    ),
    Fault(
        "the gradebook is not copied", BOOK,
        "        fresh.replace(target)\n", "        fresh.unlink()\n",
        "tests/test_running.py -k copy",
    ),
    Fault(
        "it is noted as done before it is written", COORDINATOR,
        '        notebook = {f"{lesson.notebook}.ipynb": graded.notebook}\n',
        '        notebook = {f"{lesson.notebook}.ipynb": graded.notebook}\n'
        "        state.keep_entry(submission.place, entry)\n",
        "tests/test_running.py -k killed_before_any_change",
    ),
    # the way of files
    Fault(
        "an archive may lead out of its folder", ARCHIVES,
        'if ".." in parts:', "if False:",
        "tests/test_archives.py -k bad_archive_is_refused",
    ),
    Fault(
        "a zip bomb is unpacked", ARCHIVES,
        "total > RATIO * packed", "False",
        "tests/test_archives.py -k bad_archive_is_refused",
    ),
    Fault(
        "an update drops a student's own cells", MERGE,
        "            places[place].append(cell)\n", "            pass\n",
        "tests/test_merge.py",
    ),
    Fault(
        "an update overwrites an answer", MERGE,
        "[mine] if note.id in there else [mine, note]", "[new]",
        "tests/test_merge.py",
    ),
    Fault(
        "a worker that dies takes its job along", COORDINATOR,
        "others = isinstance(error, (Disturbed, workers.WorkerDied))",
        "others = isinstance(error, Disturbed)",
        "tests/test_running.py -k disturbed_is_graded_after_them",
    ),
    Fault(
        "every worker loads every lesson", COORDINATOR,
        "lesson = lesson_of.get(executor)", "lesson = None",
        "tests/test_running.py -k stays_with_its_lesson",
    ),
    Fault(
        "a process that is stuck stays", "autograde/grading/workers.py",
        "exit=True,", "exit=False,",
        "tests/test_processes.py -k ends_in_time",
    ),
    Fault(
        "an earlier exercise is blamed though nothing calls it", "autograde/grading/verdicts.py",
        "keys[name].needs if each in called]", "keys[name].needs]",
        "tests/test_judging.py -k nothing_calls",
    ),
    Fault(
        "a copy of the lesson's own line binds a name anew", "autograde/rubric/runs.py",
        "run.source.strip() in given.source", "run.source == given.source",
        "tests/test_lesson_names.py -k bind_nothing_anew",
    ),
    Fault(
        "the numbers of practice decide the points", "autograde/grading/running/run.py",
        "{PRACTICE_MIME: recorded}", "{MIME: recorded}",
        "tests/test_judging.py -k recorded_again",
    ),
    Fault(
        "a kernel that dies in practice ends the notebook", "autograde/grading/running/run.py",
        "                dead = await", "                dead = self.problem = await",
        "tests/test_judging.py -k costs_nothing",
    ),
    Fault(
        "a right answer fails on a GPU", "autograde/rubric/probes/calls.py",
        "map_tensors(value, lambda t: t.clone())", "map_tensors(value, lambda t: t.cpu())",
        "tests/test_on_a_gpu.py -k kv_cache",
    ),
    Fault(
        "a tried notebook is released", "autograde/authoring/release.py",
        "changed_since(lesson, lesson.released_notebook, nb):\n", '"":\n',
        "tests/test_build.py -k somebody_tried",
    ),
    Fault(
        "versions that 1.0 kept are not found", "autograde/course/versions.py",
        '/ "released" / lesson.name', '/ "builds" / lesson.name',
        "tests/test_from_1_0.py -k same_marks",
    ),
]  # fmt: skip


def main() -> int:
    word = " ".join(sys.argv[1:])
    unseen = 0
    with TemporaryDirectory(prefix="faults-") as folder:
        root = Path(folder, "tree")
        root.parent.chmod(0o755)  # tests of the wall run as another user, too
        shutil.copytree(HERE, root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for fault in FAULTS:
            if word in fault.name:
                began = time.monotonic()
                said = tried(root, fault)
                unseen += said != "seen"
                seconds = time.monotonic() - began
                print(f"{said:<8} {seconds:4.0f} s  {fault.name:<50} {fault.test}", flush=True)
    return 1 if unseen else 0


def tried(root: Path, fault: Fault) -> str:
    """Put a fault into the copy, run its test, and take it out again: "seen" if the test failed."""
    path = root / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        return "no place"
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--numprocesses=0", "-qx", *shlex.split(fault.test)]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True
    )
    path.write_text(text, encoding="utf-8")
    if done.returncode == 0:
        return "UNSEEN"
    return "seen" if done.returncode == FAILED else "no test"


if __name__ == "__main__":
    sys.exit(main())
