"""The queries that one submission of many makes to the gradebook, nbgrader's database."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from classes import gradebook_of
from marking_class import make_marking_class, marks_of
from sqlalchemy import event
from traitlets.config import Config

from autograde.grading.gradebook import marks_of_class, open_gradebook, save_scores
from autograde.grading.submission import Place


def test_a_submission_does_not_read_the_rows_of_the_whole_course(tmp_path: Path) -> None:
    lesson = make_marking_class(tmp_path, {"ada": "It is saved with the layer."})
    asked: list[tuple[str, Any]] = []
    with gradebook_of(tmp_path) as gradebook:
        engine = gradebook.db.get_bind()
        event.listen(engine, "before_cursor_execute", lambda *a: asked.append(a[2:4]))
        save_scores(gradebook, Place("ada", lesson), marks_of(lesson, ""))
        marks = marks_of_class(gradebook, lesson, "ada")
        with engine.connect() as connection:
            plans = [
                (step, statement)
                for statement, values in asked
                if statement.startswith("SELECT")
                for *_, step in connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {statement}", values
                )
            ]
    assert marks["ada"].automatic
    large = {f"SCAN {table}" for table in ("grade", "comment", "submitted_notebook")}
    assert plans
    assert not [(step, statement) for step, statement in plans if step in large]


def test_two_who_open_a_gradebook_first_both_get_it(tmp_path: Path) -> None:
    config, ready = Config({"CourseDirectory": {"root": str(tmp_path)}}), Barrier(4)

    def use(number: int) -> None:
        ready.wait()
        with open_gradebook(config) as gradebook:
            gradebook.update_or_create_assignment(f"lesson_{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    with open_gradebook(config) as gradebook:
        assert len(gradebook.assignments) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["gradebook.db"]
