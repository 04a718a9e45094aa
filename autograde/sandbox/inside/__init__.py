"""What runs behind the wall: the warm template and, forked from it, one kernel a request.

template.py   imports everything once, then waits for requests
enter.py      namespaces and mounts of one kernel
first.py      the first process of a kernel's own namespace: watches it, ends everything with it
confine.py    limits, capabilities and system calls of the kernel's process
landlock.py   files it may touch, said a second time
kernel.py     the kernel itself
"""
