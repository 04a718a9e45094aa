"""Starts the kernels that notebooks of the course run in.

provisioner     a kernel for jupyter_client, with a wall or without
template        the warm process behind the wall, and requests to it for kernels
wall            what a kernel may see: the bubblewrap command, and whether it works here
both_sides      names and limits that both sides of the wall know
control_groups  memory and processes of a kernel, bounded by Linux itself
host_limits     what the user who runs kernels may have used up
imports         quick imports, on both sides
inside/         the code behind the wall; copied into it, together with values/, rubric/ and
                notebook/
"""
