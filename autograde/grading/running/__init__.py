"""Run a submission's cells in a kernel, and the course's own reference in this process.

needed            says which of the lesson's own cells have to run
run               runs the notebook, using notebook_client
reference         runs the lesson's own answers and makes a key from their results
"""
