"""Run a submission's cells in a kernel, and the course's own reference in this process.

needed            says which of the lesson's own cells have to run
job               what is run and what came of it, as plain data
run               runs the notebook, using notebook_client; deadline ends what does not end,
                  outputs keeps what is used of what a kernel sends
reference         runs the lesson's own answers and makes a key from their results
"""
