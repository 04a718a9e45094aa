"""What code behind the wall tries, and what it must print. Adding a case is adding a row.

Names in capitals are filled in with places outside: see `outside` in test_wall.py.
"""
# ruff: noqa: E501 (a row is code, and easier to read unbroken)

TRY = """
def tried(*attempts):
    for attempt in attempts:
        try:
            print("GOT", repr(attempt())[:200])
        except BaseException as error:
            print("kept out:", type(error).__name__)
"""

TRIES = (
    "bwrap --unshare-all --ro-bind / / --proc /proc true",
    "unshare --user --map-root-user --mount --pid --ipc --net --uts --fork "
    "sh -c 'mount -t proc none /proc && mount -t tmpfs none /tmp'",
)
"""What a wall asks of Linux, asked here without the code that is tested."""

NO_GROUP = "no control group"
"""What wall_driver.py says where it may not make one."""
NO_USERS = "no users to give"
"""What it says where kernels are the user who starts them, or one that stands for him."""
LANDLOCK = "files that only Landlock keeps it from"
KEPT_OUT = {
    # the mounts let it: /proc is its own
    LANDLOCK: "tried(lambda: open('/proc/self/comm', 'w').write('other'))",
    "the course": "tried(lambda: open('SECRET').read(), lambda: os.listdir('FOLDER'))",
    "another way there": """
os.symlink('SECRET', 'link')
tried(lambda: open('link').read(), lambda: open('/proc/self/root' + 'SECRET').read(),
      lambda: open('../' * 20 + 'SECRET').read(), lambda: open('/proc/1/root' + 'SECRET').read(),
      lambda: open('/proc/1/cwd/' + 'SECRET').read(), lambda: os.chdir('/proc/1/cwd'))
""",
    "system files": """
tried(*(lambda p=p: open(p).read(1) for p in
        ('/etc/shadow', '/etc/hostname', '/var/log/dpkg.log', '/boot', 'HOST_HOME/.bashrc', '/dev/mem',
         '/proc/kcore', '/proc/kmsg', '/sys/kernel/uevent_helper', '/dev/vda', '/dev/kmsg')))
""",
    "what administrators keep": """
tried(*(lambda p=p: os.listdir(p) for p in ('/usr/local/share', '/usr/local/etc', '/usr/local/src', '/usr/src')))
""",
    "other processes": """
others = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
assert not others, others
tried(lambda: open('/proc/1/environ').read(), lambda: open('/proc/1/mem', 'rb').read(1),
      lambda: os.listdir('/proc/1/fd'), lambda: open('/proc/1/maps').read(),
      lambda: os.kill(HOST_PID, 0))
""",
    "debugging": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    if libc.syscall(*numbers) < 0:
        raise OSError(ctypes.get_errno(), 'no')
tried(lambda: call(101, 16, 1, 0, 0), lambda: call(101, 16, os.getppid(), 0, 0),
      lambda: call(310, 1, 0, 0, 0, 0, 0), lambda: call(438, 0, 0, 0))
""",
    "the network": """
import socket, urllib.request
def reach(family, address):
    with socket.socket(family) as s:
        s.settimeout(2)
        s.connect(address)
tried(lambda: reach(socket.AF_INET, ('127.0.0.1', PORT)), lambda: reach(socket.AF_INET6, ('::1', PORT)),
      lambda: reach(socket.AF_INET, ('1.1.1.1', 53)), lambda: reach(socket.AF_INET, ('HOST_IP', PORT)),
      lambda: socket.getaddrinfo('example.org', 443),
      lambda: reach(socket.AF_UNIX, '\\0ABSTRACT'), lambda: reach(socket.AF_UNIX, 'UNIX_SOCKET'),
      lambda: reach(40, (2, 1024)), lambda: socket.socket(17, socket.SOCK_RAW, 3),
      lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
      lambda: urllib.request.urlopen('http://127.0.0.1:PORT', timeout=2))
import subprocess
tried(lambda: subprocess.run(['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/PORT'], check=True,
                             capture_output=True))
""",
    "writing elsewhere": """
import sys, torch
tried(*(lambda p=p: open(p, 'w') for p in
        ('/x', '/usr/x', '/opt/x', '/etc/passwd', '/dev/x', '/ipc/x', '/proc/sys/kernel/hostname',
         '/scratch/x', '/var/x', '/proc/sys/user/max_user_namespaces', 'HOST_HOME/x',
         '/opt/lesson/autograde/rubric/judge.py', torch.__file__, os.__file__, sys.executable)))
tried(lambda: os.remove('/ipc/k-1'), lambda: os.rename('/ipc/k-1', '/ipc/k-9'),
      lambda: os.chmod('/ipc', 0o777), lambda: os.mkdir('/dev/x'), lambda: os.mkdir('/home/x'))
""",
    "new namespaces": """
import ctypes, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), 'no')
tried(*(lambda f=f: call('unshare', f) for f in
        (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x08000000, 0x02000000, 0x80)))
tried(lambda: call('mount', b't', b'/tmp', b'tmpfs', 0, None), lambda: call('umount2', b'/proc', 2),
      lambda: call('mount', None, b'/ipc', None, 32 | 4096, None), lambda: call('chroot', b'/tmp'),
      lambda: call('setns', 0, 0), lambda: call('syscall', 56, 0x10000000 | 17, 0, 0, 0, 0),
      lambda: call('syscall', 435, 0, 0), lambda: os.setuid(0), lambda: os.setgid(0),
      lambda: subprocess.run(['unshare', '-U', 'true'], check=True, capture_output=True),
      lambda: subprocess.run(['mount', '-t', 'tmpfs', 't', '/tmp'], check=True, capture_output=True))
""",
    "memory that no limit counts": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    if libc.syscall(*numbers) < 0:
        raise OSError(ctypes.get_errno(), 'no')
tried(lambda: os.memfd_create('x'), lambda: call(29, 0, 1 << 20, 0o1600), lambda: call(425, 1, 0),
      lambda: call(250, 0, -4, 1), lambda: call(248, b'user', b'a', b'b', 1, -4))
""",
    "what Linux has of files in memory": """
import ctypes, mmap, torch
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    if libc.syscall(*numbers) < 0:
        raise OSError(ctypes.get_errno(), 'no')
file = os.open(torch.__file__, os.O_RDONLY)
tried(lambda: os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT), lambda: call(27, 0, 4096, 0),
      lambda: call(451, file, 0, 0, 0), lambda: call(206, 1, ctypes.byref(ctypes.c_long())))
""",
    "when and where the process that watches it runs": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    if libc.syscall(*map(ctypes.c_long, numbers)) < 0:
        raise OSError(ctypes.get_errno(), 'no')
normal, first = os.sched_param(0), 2**32 + 1
tried(lambda: os.sched_setaffinity(1, {0}), lambda: os.sched_setscheduler(1, os.SCHED_IDLE, normal),
      lambda: os.sched_setparam(1, normal), lambda: call(314, 1, 0, 0), lambda: call(203, first, 0, 0))
tried(*(lambda k=k, w=w: os.setpriority(k, w, 19) for k, w in
        ((os.PRIO_PROCESS, 1), (os.PRIO_USER, 0), (os.PRIO_USER, 1000), (os.PRIO_PGRP, 0))))
tried(*(lambda k=k, w=w: call(251, k, w, 3 << 13) for k, w in ((1, 1), (1, first), (2, 0), (3, 0), (3, 1000))))
""",
    "what limits say": """
import resource
for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):
    tried(lambda: resource.setrlimit(kind, (-1, -1)))
tried(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
""",
}
"""Each prints nothing but "kept out"."""

SAYS = {
    "who and where": (
        "print(os.getuid(), os.getgid(), {*os.getgroups()} <= {1000}, os.getcwd(), len(os.sched_getaffinity(0)) > 0)",
        "1000 1000 True /home/student True",
    ),
    "nothing of the environment": (
        "print('FROM_OUTSIDE' in str(os.environ), 'USER' in os.environ)",
        "False True",
    ),
    "no capability, no new privileges": (
        "print([l.split()[1] for l in open('/proc/self/status') "
        "if l[:6] in ('CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'NoNewP', 'Seccom')])",
        "['0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '1', '2', '",
    ),
    "every thread has given them up": (
        "print({l.split()[1] for t in os.listdir('/proc/self/task') "
        "for l in open(f'/proc/self/task/{t}/status') if l[:6] in ('CapEff', 'CapPrm')})",
        "{'0000000000000000'}",
    ),
    "no open file from outside": (
        "links = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') "
        "if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "print([l for l in links if l.startswith('/') and not l.startswith(('/dev/null', '/proc/'))])",
        "[]",
    ),
    # whoever made a socket outside has the process number 0 here
    "no socket from outside but its own": (
        "import os, socket, struct\nfound = []\n"
        "for n in os.listdir('/proc/self/fd'):\n"
        "    try: s = socket.socket(fileno=os.dup(int(n)))\n"
        "    except OSError: continue\n"
        "    if s.family != socket.AF_UNIX: continue\n"
        "    peer, = struct.unpack('i8x', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))\n"
        "    if peer == 0 and not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):\n"
        "        found.append(s.getsockname())\n"
        "print(found != [], [name for name in found if not name.startswith('/ipc/k-')])",
        "True []",
    ),
    "torch as in a new process": (
        "import torch\nfirst = torch.rand(3)\nprint(torch.initial_seed())\n"
        "torch.manual_seed(67280421310721)\nprint(torch.equal(first, torch.rand(3)))",
        "67280421310721\nTrue",
    ),
    "the installed package, and of it no more than it needs": (
        "import autograde, importlib.util\n"
        "print(autograde.__file__, importlib.util.find_spec('autograde.grading'))",
        "/opt/lesson/autograde/__init__.py None",
    ),
    "the course's model": (
        "from attention_course.trained import course_model\nprint(course_model(1).context_length)",
        "48",
    ),
    "the course's own package, and what its page loads": (
        "import attention_course.explorer.live as live\nprint(live.__file__, len(live.StoryWidget._esm) > 1000)",
        "/opt/lesson/attention_course/explorer/live.py True",
    ),
    # looked at by itself: a control group, where there is one, stops the bomb below as well
    "the limit of processes": (
        "import resource\nprint(all(0 < n <= 128 for n in resource.getrlimit(resource.RLIMIT_NPROC)))",
        "True",
    ),
    "a fork bomb": (
        "import time\nchildren = 0\ntry:\n    while children < 2000:\n        if os.fork() == 0:\n"
        "            time.sleep(60); os._exit(0)\n        children += 1\nexcept BlockingIOError:\n"
        "    print('stopped', 20 < children < 200)",
        "stopped True",
    ),
    "a disk bomb": (
        "written = 0\ntry:\n    while written < 2000:\n        for n in range(9):\n"
        "            with open(f'/tmp/{written}-{n}', 'wb') as f:\n                f.write(bytes(2**20))\n"
        "            written += 1\nexcept OSError as e:\n    print('stopped', e.errno, written < 300)",
        "stopped 28 True",
    ),
    "a bomb of empty files": (
        "n = 0\ntry:\n    while n < 100_000:\n        open(f'/tmp/{n}', 'w').close()\n        n += 1\n"
        "except OSError as e:\n    print('stopped', e.errno, n < 30_000)",
        "stopped 28 True",
    ),
    "terminals": (
        "kept = []\ntry:\n    while len(kept) < 100:\n        kept.append(os.openpty())\n"
        "except OSError as e:\n    n = len(kept)\n    for pair in kept:\n"
        "        for end in pair: os.close(end)\n    print('stopped', n)",
        "stopped 32",
    ),
    "inotify": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nkept = []\n"
        "while len(kept) < 100 and (n := libc.inotify_init()) >= 0: kept.append(n)\n"
        "for n in kept: os.close(n)\nprint('stopped', len(kept))",
        "stopped 8",
    ),
    "larger buffers of sockets": (
        "import socket\nwith socket.socket() as s:\n    before = s.getsockopt(1, 7), s.getsockopt(1, 8)\n"
        "    s.setsockopt(1, 7, 10**6); s.setsockopt(1, 8, 10**6); s.setsockopt(1, 2, 1)\n"
        "    print(before == (s.getsockopt(1, 7), s.getsockopt(1, 8)), max(before) <= 2**14, s.getsockopt(1, 2))",
        "True True 1",
    ),
    "advice that is not followed": (
        "import ctypes, torch\nlibc = ctypes.CDLL(None)\nfile = os.open(torch.__file__, os.O_RDONLY)\n"
        "print(os.preadv(file, [bytearray(1)], 0), os.posix_fadvise(-1, 0, 0, os.POSIX_FADV_DONTNEED),\n"
        "      *(libc.madvise(1, 4096, advice) for advice in (20, 21, 4)))",
        "1 None 0 0 -1",
    ),
    "its own priority and processors": (
        "os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1)\n"
        "os.sched_setscheduler(os.getpid(), os.SCHED_BATCH, os.sched_param(0))\n"
        "print('lower', os.getpriority(os.PRIO_PROCESS, 0) > os.getpriority(os.PRIO_PROCESS, 1))",
        "lower True",
    ),
    "asking for too much memory at once": (
        "import torch\ntry:\n    torch.empty(2**40)\nexcept RuntimeError:\n    print('refused')",
        "refused",
    ),
    "open files": (
        "kept = []\ntry:\n    while True:\n        kept.append(open('/dev/null'))\n"
        "except OSError as e:\n    n = len(kept)\n    kept.clear()\n    print('stopped', e.errno, n < 256)",
        "stopped 24 True",
    ),
    "killing everything in sight": (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "try:\n    os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGTERM)\n"
        "    os.kill(-1, signal.SIGTERM)\nexcept OSError as e:\n    print(e)\nprint('still here')",
        "still here",
    ),
    # honest work
    "figures": ("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", "image/png"),
    "seaborn": ("import seaborn as sns\nsns.heatmap([[1, 2], [3, 4]]);", "image/png"),
    "widgets": ("import ipywidgets\nipywidgets.IntSlider()", "IntSlider"),
    "warnings": ("import warnings\nwarnings.warn('careful')", "careful"),
    "threads": (
        "import torch\ntorch.set_num_threads(4)\na = torch.ones(400, 400)\n"
        "print((a @ a).sum().item(), torch.get_num_threads())",
        "64000000.0 4",
    ),
    "a large print": ("print('x' * 3_000_000)\nprint('whole')", "xxx\nwhole"),
    "random seeds": (
        "import random, torch\nrandom.seed(1); torch.manual_seed(1)\nprint(round(random.random(), 4))",
        "0.1344",
    ),
    "sleep": ("import time\ntime.sleep(0.2)\nprint('slept')", "slept"),
    "timeit": ("%timeit -n 10 -r 2 sum(range(100))", "loops each"),
    "subprocess": (
        "import subprocess, sys\nout = subprocess.run([sys.executable, '-m', 'pip', 'list'], "
        "capture_output=True, text=True)\nprint('torch' in out.stdout, out.returncode)",
        "True 0",
    ),
    "shell": ("!echo hello from $USER", "hello from student"),
    "script magic": ("%%bash\necho hello from bash", "hello from bash"),
    "temporary files": (
        "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as f:\n    f.write('x')\n    print('ok')",
        "ok",
    ),
    "data loader": (
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "print(sum(len(b) for b in DataLoader(torch.arange(10), batch_size=2, num_workers=2)))",
        "10",
    ),
    "compiled extension of torch": (
        "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\nprint(x.grad)",
        "tensor([2., 2., 2.])",
    ),
    "own loopback": (
        "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=lambda: s.accept()[0].send(b'hi')).start()\n"
        "print(socket.create_connection(s.getsockname()).recv(2))",
        "b'hi'",
    ),
}
"""Each prints this, among other things."""

ALONE = {
    "torch as in a new process", "a fork bomb", "its own priority and processors", "a disk bomb", "a bomb of empty files",
    "asking for too much memory at once", "open files", "killing everything in sight",
}  # fmt: skip
"""These look at a new kernel, or use one up."""

KERNELS = [
    list(KEPT_OUT),
    [name for name in SAYS if name not in ALONE],
    *([name] for name in SAYS if name in ALONE),
]
"""The attempts that share a kernel, in the order in which they run."""
