"""The student's own commands on the working copy of the lessons: lab, update, self, submit."""
