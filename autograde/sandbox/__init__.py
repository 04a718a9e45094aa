"""Starts the kernels that notebooks of the course run in.

wall.py         what a kernel may see: the bubblewrap command, and whether it works here
template.py     the warm process behind that wall, and asking it for a kernel
provisioner.py  such a kernel for jupyter_client
private.py      one kernel for one notebook, with a wall or without
agreed.py       names and limits that both sides of the wall know
inside/         what runs behind the wall; bound into it, together with student/ and verdict/
"""
