"""Trusted code that takes a submission from its bytes to the gradebook and its feedback page.

record            a submission's notebook, all that is found out about it, and what it earns
pipeline          one submission, top to bottom: the steps below, called by a worker
  reading/        reads the files, chooses the notebook, puts back the lesson's own cells
  running/        runs the notebook in a kernel, and the reference on the same seed
  verdicts        judges what the rubric cells recorded
  sanitise        makes the notebook harmless and quick to show, with a panel for each verdict
  feedback        makes the page
batch             many submissions, from start to end
  coordinator     decides what to do, saves, writes; nothing else touches the gradebook
  workers         processes, or a Dask cluster
  preloaded       imports what every worker needs
submission        the plain data that coordinator and workers exchange
limits            how much one submission may cost
gradebook         nbgrader's database, and what lateness costs
state             what is kept in .autograde/: lock, secret, results
nbgrader_steps    the same steps for nbgrader's own commands
"""
