"""PYTHONSTARTUP of `autograde lab`: IPython runs it in each new kernel, in the user's namespace.

In a lesson, a cell that needs what has not run says so in one line. The lesson's set-up cell puts
fuller explanations in its place; see autograde.notebook.explaining.
"""


def _begin():
    from pathlib import Path

    from IPython import get_ipython

    try:
        from autograde.progress import NOT_RUN, PRACTICE_FILE
    except ImportError:  # a kernel of another environment
        return

    def explain(shell, etype, error, trace, tb_offset=None):
        said = NOT_RUN.format(name=error.name)
        error._render_traceback_ = lambda: [said]
        shell.showtraceback((etype, error, trace), tb_offset=tb_offset)

    if get_ipython() and Path(PRACTICE_FILE).is_file():
        get_ipython().set_custom_exc((NameError,), explain)


_begin()
del _begin
