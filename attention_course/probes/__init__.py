"""What rubrics of this course ask beyond the grader's probes."""
