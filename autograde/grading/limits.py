"""Limits on what one submission may cost the grader."""

from dataclasses import dataclass, field, replace

from autograde.sandbox.both_sides import KernelLimits


@dataclass(frozen=True)
class Limits:
    """The limits of one submission.

    Anything past a limit is cut off, the page says so, and the rest is graded; only a notebook file
    that is too large is not read at all.

    Seconds are wall time. Where nothing else is said, a limit is for the submission as a whole:
    many small things cost as much as one large thing. The largest lesson's reference needs 80
    cells, 70 kB of source, 35 outputs, 9 kB of text, 10 pictures of 0.5 MB together, and
    recordings of 1.3 MB; every limit but those of colours is at least four times as large.

    Only the curriculum may change one, the memory: a score must not depend on where it is
    computed. docs/wall.md, docs/wall_inside.md and docs/scores.md name some of these numbers.
    """

    cell_seconds: int = 30
    """For one cell: an exercise takes under a second, and a class has hundreds of cells.
    `kernel.cell_cpu_seconds` limits its processor time."""
    notebook_seconds: int = 300
    """A worker must come free even if every cell takes nearly its full limit. `kernel.cpu_seconds`
    is for the same time, and `hung_seconds` has to be longer."""
    start_seconds: int = 150
    """For its kernel to start and answer."""
    grace_seconds: int = 20
    """A run past its time has so long to end by itself; then its kernel is killed."""
    stop_seconds: int = 5
    """A run whose kernel was killed may take so long to end; then it is left behind."""
    hung_seconds: int = 600
    """A worker that takes longer has hung: a run takes at most its start and its time together."""
    more_seconds: int = 30
    """A process that nobody watches ends by itself if it hangs for so long beyond that."""
    busy_share: float = 0.5
    """A time-out counts if the notebook used at least this part of the time on a processor."""
    kernel: KernelLimits = field(default_factory=KernelLimits)
    """What the wall allows to its kernel."""

    file_bytes: int = 30_000_000
    """For the notebook's file. Parsed, 30 MB of brackets take 1 GB of memory."""
    cells: int = 500
    """Every cell costs a round trip to the kernel, and Formgrader a template."""
    cells_seen: int = 10_000
    """A file has room for ten million; only among so many are the lesson's looked for."""
    source_chars: int = 300_000
    """For all cells together. Pages highlight code: one character can become 23 bytes of HTML."""
    text_cell_chars: int = 20_000
    """For one text cell: the time that Markdown takes grows with the square of its length."""
    text_chars: int = 100_000
    """For all the student's own text cells together, for the same reason."""
    markdown_chars: int = 8_000
    """For a text cell that is formatted; a longer one is shown as plain text."""
    all_markdown_chars: int = 40_000
    """For all of them; those after that are shown as plain text."""
    coloured_chars: int = 8_000
    """For a student's code cell; if one is longer, the notebook is shown without colours."""
    all_coloured_chars: int = 20_000
    """For all of them. One character can become 24 of HTML, which Formgrader parses."""
    shown_chars: int = 20_000
    """For a code cell on a page: in a long one, Formgrader takes quadratic time for every "<"."""
    all_shown_chars: int = 100_000
    """For all code on a page."""

    message_bytes: int = 16_000_000
    """For one message of a kernel. Parsed, 16 MB of brackets take 0.5 GB of memory."""
    received_bytes: int = 200_000_000
    """For all large messages together: parsing them takes time after the cell has sent them."""
    socket_bytes: int = 64_000_000
    """For one message at the socket, read or not: a larger one closes the connection."""
    waiting_messages: int = 8
    """This many messages may wait to be read; the others wait in the kernel's own memory."""
    worker_bytes: int = 1_000_000_000
    """A worker's memory may grow by this: parts of a message wait in it until the last comes."""
    recording_bytes: int = 24_000_000
    """For all recordings together. They are text in a message, parsed, kept, sent, parsed again."""
    outputs: int = 1_000
    """Pages give every output a block of its own."""
    output_chars: int = 20_000
    """For one output, or all that a cell prints to a stream: nobody reads more."""
    page_chars: int = 500_000
    """For all outputs on a page. Text is highlighted: one character can become 10 bytes of HTML."""
    pictures: int = 100
    """A browser holds every picture of a page in memory, unpacked."""
    picture_bytes: int = 5_000_000
    """For all pictures together, as base64 text in the page."""
    picture_pixels: int = 4_000_000
    """For one picture: a PNG file of 1 MB can unpack to gigabytes in the browser."""

    files: int = 1_000
    """Beside the notebook; every one is written four times."""
    together_bytes: int = 100_000_000
    """For the notebook and the files beside it."""

    def with_memory(self, gigabytes: float) -> "Limits":
        """Return the same limits for a lesson whose kernels get this much memory."""
        more = round(gigabytes * 2**30) - KernelLimits.memory_bytes
        kernel = replace(
            self.kernel,
            memory_bytes=self.kernel.memory_bytes + more,
            address_bytes_a_process=self.kernel.address_bytes_a_process + more,
        )
        return replace(self, kernel=kernel)


LIMITS = Limits()
