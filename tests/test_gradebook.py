"""The queries that one submission of many makes to the gradebook, nbgrader's database."""

from pathlib import Path
from typing import Any

from classes import gradebook_of
from marking_class import make_marking_class, marks_of
from sqlalchemy import event

from autograde.grading.gradebook import marks_of_class, save_scores
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
