"""From the files that were handed in to a notebook with the lesson's own cells back in place.

handed_in   reads the files, and chooses the notebook among them
parse       reads what counts of it
restore     puts back the cells that were not the student's, and gathers written answers
"""
