"""A story on a hub: a student works, an instructor grades, another student tries to look on.

The tests are its steps, in order. Screenshots of each are in build/screenshots/hub/.
"""

import json
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from classes import wrong_answer
from conftest import HERE
from nightly import nightly
from playwright.sync_api import Browser, expect
from running_hub import Hub
from wall_attempts import TRIES

from autograde.course.lessons import lessons
from browser import formgrader, person
from browser import hub as hubs
from browser.conftest import FAILED, Camera, Desk, watch
from browser.hub import log_in, say_who
from browser.places import right_answer

LESSON, NOTEBOOK = "02_causal_mask", "causal_mask"
WRONG, VARIANT, RIGHT = "causal_mask", "one_too_many", "apply_mask"
COURSE = Path("/home/instructor/course")
EXCHANGE = Path("/srv/exchange/attention")

pytestmark = [
    pytest.mark.story,
    nightly,
    pytest.mark.skipif(bool(hubs.why_not()), reason=hubs.why_not()),
]

FORBIDDEN = [
    COURSE / "source" / LESSON / f"{NOTEBOOK}.py",
    COURSE / "solutions" / LESSON / f"{NOTEBOOK}.ipynb",
    COURSE / "gradebook.db",
    COURSE.parent / ".bashrc",
    Path("/home/ada", LESSON, f"{NOTEBOOK}.ipynb"),
    Path("/home/ada/.local/share/jupyter/nbgrader_cache"),
    EXCHANGE / "inbound",
    Path("/srv/hub/jupyterhub.sqlite"),
    Path("/etc/shadow"),
]
"""All of this exists on the hub while bob tries to read it."""
OF_GRADING = [EXCHANGE / "feedback", COURSE / "feedback" / "ada", COURSE / ".autograde" / "secret"]
"""This too, once there was grading."""
HIDDEN = [HERE / "source" / LESSON / f"{NOTEBOOK}.py", HERE / "solutions", HERE / ".git"]
"""This exists on the machine and not on the hub."""
ALLOWED = EXCHANGE / "outbound" / LESSON / f"{NOTEBOOK}.ipynb"

TRY = """import json, os

def read(path):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()
    except OSError as error:
        return type(error).__name__
    return "read"

owners = {{os.stat(f"/proc/{{name}}").st_uid for name in os.listdir("/proc") if name.isdigit()}}
said = {{path: read(path) for path in {paths}}}
print(json.dumps([said, owners == {{os.getuid()}}]))
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with hubs.hub(tmp_path_factory.mktemp("hub") / "said") as running:
        yield running


@pytest.fixture(scope="module")
def wall(hub: Hub) -> None:
    """The instructor, an ordinary user, can make a wall to grade behind."""
    asks = "from autograde.sandbox.wall import missing; print(missing(), end='')"
    as_instructor = [
        "nsenter", f"--target={hub.first.pid}", "--mount", "--pid", "--wd",
        "setpriv", "--reuid=instructor", "--regid=instructor", "--init-groups",
    ]  # fmt: skip
    python = HERE / ".venv" / "bin" / "python"
    said = subprocess.run(
        [*as_instructor, python, "-c", asks], capture_output=True, text=True, check=True
    ).stdout
    tried = [subprocess.run([*as_instructor, "sh", "-c", line]).returncode for line in TRIES]
    if said and any(tried):
        pytest.skip(f"no wall here for an ordinary user: {said}")
    assert said == ""


def at_desk(browser: Browser, hub: Hub, user: str) -> Iterator[Desk]:
    with watch(browser) as seen:
        seen.page.set_viewport_size({"width": 1400, "height": 1000})
        yield Desk(log_in(seen.page, hub, user), seen)


@pytest.fixture(scope="module")
def instructor(hub: Hub, browser: Browser) -> Iterator[Desk]:
    yield from at_desk(browser, hub, "instructor")


@pytest.fixture(scope="module")
def ada(hub: Hub, browser: Browser) -> Iterator[Desk]:
    yield from at_desk(browser, hub, "ada")


@pytest.fixture(scope="module")
def bob(hub: Hub, browser: Browser) -> Iterator[Desk]:
    yield from at_desk(browser, hub, "bob")


@pytest.fixture(autouse=True)
def _looked_after(
    instructor: Desk, ada: Desk, bob: Desk, camera: Camera, request: pytest.FixtureRequest
) -> Iterator[None]:
    """No step leaves an error on a console; one that fails shows what was to be seen."""
    yield
    for name, desk in {"instructor": instructor, "ada": ada, "bob": bob}.items():
        if request.node.stash.get(FAILED, False):
            camera.shoot(desk.page, f"failed_{name}")
        assert desk.seen.unknown_errors() == []


def test_the_instructor_releases_the_lesson(instructor: Desk, camera: Camera) -> None:
    inside = formgrader.inside(instructor.page)
    camera.shoot(instructor.page, "logged_in")
    row = formgrader.assignment(inside, LESSON)
    formgrader.press(inside, row, "release")
    expect(row.locator("td.status")).to_have_text("released")


def test_the_student_fetches_it(ada: Desk, camera: Camera) -> None:
    person.command(ada.page, "nbgrader:open-assignment-list")
    row = person.assignment(ada.page, "released", LESSON)
    row.get_by_role("button", name="Fetch").click()
    person.assignment(ada.page, "fetched", LESSON)
    camera.shoot(ada.page, "fetched")


def test_the_student_answers_one_wrong_and_one_right(ada: Desk, camera: Camera) -> None:
    lesson = lessons(HERE)[LESSON]
    person.open_notebook(ada.page, f"{LESSON}/{NOTEBOOK}.ipynb")
    person.run_cell(ada.page, "setup")
    wrong = wrong_answer(lesson, WRONG, VARIANT)
    expect(person.answer(ada.page, WRONG, wrong.code)).to_contain_text("✗")
    panel = person.answer(ada.page, RIGHT, right_answer(lesson, RIGHT))
    expect(panel).to_contain_text(f"{RIGHT}: 1 of 1 point")
    camera.shoot(ada.page, "answered")


def test_validate_says_what_is_wrong(ada: Desk, camera: Camera) -> None:
    person.save(ada.page)
    said = person.validate(ada.page)
    camera.shoot(ada.page, "validated")
    assert WRONG in said
    assert f"test_{RIGHT}" not in said
    person.close_dialog(ada.page)


def test_the_student_submits(ada: Desk, camera: Camera) -> None:
    person.command(ada.page, "nbgrader:open-assignment-list")
    person.assignment(ada.page, "fetched", LESSON).get_by_role("button", name="Submit").click()
    person.assignment(ada.page, "submitted", LESSON)
    camera.shoot(ada.page, "submitted")


def test_the_instructor_collects(instructor: Desk, camera: Camera) -> None:
    inside = formgrader.inside(instructor.page)
    row = formgrader.assignment(inside, LESSON)
    formgrader.press(inside, row, "collect")
    expect(row.locator("td.num-submissions")).to_have_text("1")
    camera.shoot(instructor.page, "collected")


@pytest.mark.usefixtures("wall")
def test_the_instructor_grades_and_returns_feedback(instructor: Desk, camera: Camera) -> None:
    inside = formgrader.inside(instructor.page)
    formgrader.open_submissions(inside, LESSON)
    row = formgrader.submission(inside, "ada")
    formgrader.press(inside, row, "autograde")
    expect(row.locator("td.status")).to_have_text("graded")
    camera.shoot(instructor.page, "graded")
    for button in ("generate-feedback", "release-feedback"):
        formgrader.press(inside, row, button)


@pytest.mark.usefixtures("wall")
def test_the_student_reads_the_feedback(ada: Desk, camera: Camera) -> None:
    page = person.read_feedback(ada.page, LESSON, NOTEBOOK)
    expect(page.locator("body")).to_contain_text("1 of 13 points")
    expect(page.locator("body")).to_contain_text(f"{WRONG}: 0 of 1 point")
    expect(page.locator("body")).to_contain_text(f"{RIGHT}: 1 of 1 point")
    camera.shoot(ada.page, "feedback")


def test_another_student_sees_nothing_of_it(bob: Desk, hub: Hub, camera: Camera) -> None:
    person.command(bob.page, "nbgrader:open-assignment-list")
    person.assignment(bob.page, "released", LESSON)
    for state in ("fetched", "submitted"):
        rows = bob.page.locator(f"#{state}_assignments_list:visible > .list_item")
        expect(rows.filter(has_text=LESSON)).to_have_count(0)
    camera.shoot(bob.page, "bob_sees")
    mine = bob.page.request.get(f"{bob.lab.url}/api/contents")
    assert (mine.status, mine.json()["content"]) == (200, [])
    assert bob.page.request.get(f"{hub.url}/user/ada/api/contents").status == 403
    assert bob.page.request.get(f"{bob.lab.url}/formgrader/api/assignments").status == 404


def test_what_a_students_server_may_read(bob: Desk, hub: Hub, camera: Camera) -> None:
    there = [
        path
        for path in [*FORBIDDEN, *OF_GRADING]
        if Path(f"/proc/{hub.first.pid}/root{path}").exists()
    ]
    assert set(FORBIDDEN) <= set(there)
    assert [path for path in HIDDEN if not path.exists()] == []
    person.command(bob.page, "notebook:create-new", kernelName="python3")
    person.kernel_is_idle(bob.page)
    person.type_into(bob.page, "", TRY.format(paths=[*map(str, [*there, *HIDDEN, ALLOWED])]))
    cell = person.run_cell(bob.page, "import json")
    camera.shoot(bob.page, "bob_tries")
    said, alone = json.loads(cell.locator(".jp-OutputArea-output").inner_text())
    assert said == {
        **{str(path): "PermissionError" for path in there},
        **{str(path): "FileNotFoundError" for path in HIDDEN},
        str(ALLOWED): "read",
    }
    assert alone, "bob sees processes of others"


def test_a_cell_that_asks_for_too_much_memory_fails_and_its_kernel_lives_on(bob: Desk) -> None:
    greedy = "lives = True; block = bytearray(3 << 30)"
    person.type_into(bob.page, "", greedy)
    cell = person.run_cell(bob.page, greedy)
    expect(cell.locator(".jp-OutputArea-output")).to_contain_text("MemoryError")
    person.type_into(bob.page, "", "print(lives)")
    cell = person.run_cell(bob.page, "print(lives)")
    expect(cell.locator(".jp-OutputArea-output")).to_have_text("True")


def test_who_comes_when_the_hub_is_full_reads_so_and_gets_in_when_there_is_room(
    hub: Hub, browser: Browser, bob: Desk, camera: Camera
) -> None:
    with watch(browser) as seen:
        say_who(seen.page, hub, "zoe")
        error = seen.page.locator(".error")
        expect(error).to_contain_text("Your server has to wait")
        expect(error).to_contain_text("Try again in a few minutes.")
        expect(error).to_contain_text("This page tries again by itself.")
        camera.shoot(seen.page, "full")
        bob.page.goto(f"{hub.url}/hub/home")
        bob.page.locator("#stop").click()
        seen.page.wait_for_url(f"{hub.url}/user/zoe/lab**", timeout=person.SLOW)


def test_a_hub_that_ends_leaves_nothing(hub: Hub) -> None:
    started = hub.processes()
    assert len(started) > len(hubs.USERS)
    hub.process.terminate()
    hub.process.wait(hubs.STOP_SECONDS)
    assert [process for process in started if process.is_running()] == []
    users = {user.pw_name for user in pwd.getpwall()}
    assert users.isdisjoint(hubs.USERS)
    assert "hub" not in {line.split()[0] for line in Path("/proc/mounts").read_text().splitlines()}
    assert [user for user in hubs.USERS if Path("/home", user).exists()] == []
