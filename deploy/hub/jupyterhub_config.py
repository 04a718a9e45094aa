"""A JupyterHub on one machine: who may log in, and what a person's server starts with.

Everybody is a user of the machine and logs in with that user's password (PAM). Those in its group
`instructors` get Formgrader on ~/course, those in `students` get nbgrader's list of assignments.
"""

import grp
import os
import pwd
import sys
from pathlib import Path

import autograde

c = get_config()  # noqa: F821 (JupyterHub defines it)

HERE = Path(__file__).resolve().parent
PACKAGE = Path(autograde.__file__).parent
# Formgrader is a page in a frame, which the instructors' folder allows.
OF_INSTRUCTORS = (HERE / "instructors", PACKAGE / "marking" / "jupyter", HERE / "everyone")
OF_STUDENTS = (HERE / "students", PACKAGE / "workspace" / "jupyter", HERE / "everyone")

SERVER = [sys.executable, "-m", "jupyterhub.singleuser"]
# A cell that asks for more fails with Python's own message, and its kernel lives on.
LIMITED = ["prlimit", f"--data={2 << 30}"]
TAKES = 600 << 20  # bytes: a student's server with one lesson open
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def prepare(spawner):
    """Give a server the settings for its user's role in the course."""
    user = pwd.getpwnam(spawner.user.name)
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    teaches = grp.getgrnam("instructors").gr_gid in groups
    folders = OF_INSTRUCTORS if teaches else OF_STUDENTS
    spawner.environment["JUPYTER_CONFIG_PATH"] = os.pathsep.join(map(str, folders))
    if teaches:
        spawner.notebook_dir = "~/course"
        spawner.default_url = "/lab?formgrader=true"
    else:
        spawner.cmd = [*LIMITED, *SERVER]
        spawner.environment["PYTHONSTARTUP"] = str(PACKAGE / "workspace" / "jupyter" / "startup.py")


c.PAMAuthenticator.allowed_groups = {"instructors", "students"}

c.Spawner.cmd = SERVER
c.Spawner.pre_spawn_hook = prepare
# Many kernels share the cores; if each also started a thread for every core, all would wait. The
# lessons compute on one thread anyway; this is for other notebooks, and for NumPy.
c.Spawner.environment = {"OMP_NUM_THREADS": "1"}
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120

# Whoever comes when no more servers can start, or none has room, is told so, and the page tries
# again by itself: a start that waits for all others would end in a timeout, and a server without
# memory in a dead kernel.
c.JupyterHub.concurrent_spawn_limit = 5 * (os.cpu_count() or 1)
c.JupyterHub.active_server_limit = MEMORY // TAKES
c.JupyterHub.template_paths = [str(HERE / "templates")]

# On this machine alone; for others, put a server with TLS in front of it.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.ConfigurableHTTPProxy.command = [
    str(Path(sys.prefix, "hub", "node_modules", ".bin", "configurable-http-proxy"))
]
