"""Run a submission's cells in a kernel, and the course's own reference in this process.

job               which cells are run and what came of them, as plain data
run               runs the notebook, using notebook_client, and ends what does not end;
                  outputs keeps what is used of what a kernel sends
reference         runs the lesson's own answers and makes keys from their results
"""
