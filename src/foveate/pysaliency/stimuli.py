"""Which picture a stimulus of pysaliency is, and which observer a subject: said by the user, never guessed.

pysaliency knows a stimulus by its id, a hash of its pixels: the same in every selection of stimuli, which an index or
a file's name need not be. So a picture is looked up by that id.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveate.errors import InputError, some_of

# Attributes of a fixation that may say whose it is, the first that is there: a name as `write_pysaliency` writes it for
# observers that are not whole numbers; what newer versions of pysaliency call it; and what its release does.
SUBJECT = ("subject_name", "subject", "subjects")


def pictures_in_order(stimuli: Any, names: Sequence[Any]) -> dict[str, Any]:
    """Stimulus id -> picture, from the names of pysaliency's stimuli in their order."""
    if len(names) != len(stimuli):
        raise InputError(f"{len(names)} names for {len(stimuli)} stimuli: name all of them, in their order.")
    pictures: dict[str, Any] = {}
    for index, (identity, name) in enumerate(zip(stimuli.stimulus_ids, names, strict=True)):
        if pictures.setdefault(identity, name) != name:
            raise InputError(
                f"stimulus {index} is {name!r}, but pixel by pixel the same as that of {pictures[identity]!r}, so that "
                "pysaliency cannot tell them apart; give both the name of one picture, or leave one out."
            )
    return pictures


def pictures_by_file(stimuli: Any) -> dict[str, Any]:
    """Stimulus id -> picture, from the names of their files without folder and suffix: 'beach' for a/beach.png."""
    files = getattr(stimuli, "filenames", None)
    if files is None:
        raise InputError(f"a {type(stimuli).__name__} has no files; name the stimuli with pictures_in_order.")
    stems = [Path(file).stem for file in files]
    twice = [str(file) for file, stem in zip(files, stems, strict=True) if stems.count(stem) > 1]
    if twice:
        raise InputError(f"files {some_of(twice)} would be one picture; name the stimuli with pictures_in_order.")
    return pictures_in_order(stimuli, stems)


def picture_of(identity: str, pictures: Mapping[str, Any] | None, known: Sequence[Any]) -> Any:
    """The picture with this stimulus id; without `pictures` maps have the ids for names."""
    if pictures is None:
        if identity not in known:
            raise InputError(
                f"no map for the stimulus {identity}; there are maps for {some_of(known)}: say which stimulus is which "
                "picture with pictures=pictures_in_order(stimuli, names)."
            )
        return identity
    if identity not in pictures:
        raise InputError(
            f"no map for the stimulus {identity}: pictures names {len(pictures)} others ({some_of(list(pictures))}); "
            "make it from all stimuli."
        )
    return pictures[identity]


def subject_in(attributes: Mapping[str, Any] | None) -> Any:
    """Who made a fixation, from its attributes."""
    name = subject_attribute(list(attributes or {}))
    return plain((attributes or {})[name])


def subject_attribute(names: Sequence[str]) -> str:
    """The attribute that says whose fixations these are."""
    for name in SUBJECT:
        if name in names:
            return name
    raise InputError(
        f"the fixations do not say whose they are (attributes: {some_of(list(names)) or 'none'}), but every subject "
        "has a posterior of their own; give attributes={'subject': ...}, or take one subject's model: "
        "model.of_subject(...)."
    )


def plain(value: Any) -> Any:
    """A subject as Python's own number or text."""
    value = value.item() if isinstance(value, np.generic | np.ndarray) else value
    return value.decode() if isinstance(value, bytes) else value
