"""The code behind the wall: the warm template and, forked from it, one kernel per request.

template_server  imports everything once, by `warm`, then waits for requests
namespaces       namespaces and mounts of one kernel
supervisor       the first process of a kernel's own namespace: watches it, ends everything with it
confine          limits, capabilities, files and system calls of the kernel's process
kernel           the kernel itself; messages are how it writes what it sends
system           system calls that Python does not offer
"""
