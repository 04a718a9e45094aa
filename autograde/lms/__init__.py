"""To and from a learning management system: its downloads in, its grade files out.

collect         the downloads of a lesson, from zip archives to submitted/
  archives      archives, checked before anything is unpacked
  recognise     whose a file is, by its path; worksheet: who handed in when, by Moodle's list
  people        the student of the gradebook who is meant
  assign_files  which student gets which file, or why nobody does
exports         grades as CSV, for Canvas and for Moodle; spreadsheet: cells that run nothing
exchange        nbgrader's exchange; plain_copy: a copy of what students change at any moment
"""
