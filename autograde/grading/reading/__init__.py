"""From the files that were handed in to a notebook with the lesson's own cells back in place.

handed_in   reads the files
choice      chooses the notebook among them
restore     parses it, and puts back the cells that were not the student's
written     gathers written answers
"""
