"""The command line: registers the commands and turns a user's mistake into one line.

Heavy imports stay inside the commands, so that help is instant.
"""

import errno
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any

import typer

from foveate.commands import (
    ablate,
    calibrate,
    check,
    compare,
    confuse,
    contrast,
    curves,
    demo,
    diagnose,
    fit,
    init,
    population,
    predictive,
    recover,
    reliability,
    report,
    reproduce,
    simulate,
)
from foveate.commands.messages import INTERRUPTED, MISTAKE, say
from foveate.commands.reading import SETTINGS_ENDING
from foveate.errors import InputError

# NumPy's matrix products are small here: threads of their own make them slower, many times so on a busy machine.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

# What a disk without room says: it is full, a quota is used up, or files may not become so large.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Newer releases of Typer bring their own copy of click, older ones use an installed one: found through Typer itself.
UsageMistake: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    help="Fit, simulate and judge generative models of scan paths: where a person looks next in a picture.",
    epilog="Example: foveate demo --out demo --seed 1",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


COMMANDS: tuple[tuple[ModuleType, Callable[..., None]], ...] = (
    (demo, demo.demo),
    (init, init.init),
    (check, check.check),
    (fit, fit.fit),
    (population, population.population),
    (diagnose, diagnose.diagnose),
    (simulate, simulate.simulate),
    (report, report.report),
    (compare, compare.compare),
    (ablate, ablate.ablate),
    (curves, curves.curves),
    (predictive, predictive.predictive),
    (confuse, confuse.confuse),
    (contrast, contrast.contrast),
    (reproduce, reproduce.reproduce),
    (recover, recover.recover),
    (calibrate, calibrate.calibrate),
    (reliability, reliability.reliability),
)


def main() -> None:
    """The program. A user's mistake is one line on standard error and exit code 2."""
    for variable in ONE_THREAD:  # read when NumPy is imported, which no command has done yet
        os.environ.setdefault(variable, "1")
    # Workers share a GPU with this process, for which JAX would take three quarters of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        code = app(standalone_mode=False, default_map=study_defaults(sys.argv[1:]))
    except InputError as error:
        code = say(str(error), MISTAKE)
    except UsageMistake as error:
        # Without a command the help was shown already, and there is nothing more to say.
        message = error.format_message()  # type: ignore[attr-defined]
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "foveate"
        joined = f"{message} See" if message.endswith("?") else f"{message.rstrip('.')}; see"
        code = MISTAKE if not message else say(f"{joined} {command} --help.", MISTAKE)
    except OSError as error:
        if error.errno not in FULL:
            raise
        where = f"{error.filename}: " if error.filename else ""
        code = say(
            f"{where}{error.strerror}; what is finished stays: make room and run the same command again.", MISTAKE
        )
    except (KeyboardInterrupt, typer.Abort):
        code = say("interrupted; run the same command again to start over.", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def study_defaults(arguments: list[str]) -> dict[str, dict[str, Any]]:
    """For every command the defaults of its options that [study] has in the settings file of --data, or of check."""
    pairs = list(zip(arguments, [*arguments[1:], ""], strict=True))
    named = [after if word == "--data" else word.removeprefix("--data=") for word, after in pairs if "--data" in word]
    if arguments[:1] == ["check"]:
        named = [after for word, after in pairs if word != "--figure" and after.endswith(SETTINGS_ENDING)][:1]
    files = [name for name in named if name.endswith(SETTINGS_ENDING)]
    if not files or "--help" in arguments:
        return {}
    from foveate.data.project import Project

    options = Project.read(files[-1]).study.options()
    return {command.__name__: options for _, command in COMMANDS}


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"foveate {version('foveate')}")
        raise typer.Exit


@app.callback()
def _foveate(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


for module, command in COMMANDS:
    app.command(help=module.HELP, short_help=module.SHORT_HELP, epilog=module.EXAMPLE)(command)
