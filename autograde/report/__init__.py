"""The class report: scores, misconceptions and rubric lines of a whole class."""
