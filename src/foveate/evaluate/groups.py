"""Whose group is which, checked before anything is contrasted: groups of observers, or conditions of an experiment."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError, some_of


def check_groups(groups: Mapping[Any, Any]) -> None:
    """Refuse groups of which there is only one, and those with a single observer."""
    _check_several(groups)
    for group, count in Counter(groups.values()).items():
        if count < 2:
            raise InputError(
                f"group {group!r} has one observer: how much observers differ within it cannot be known; give it two "
                "or more, or leave it out."
            )


def check_conditions(groups: Mapping[Any, Any], persons: Mapping[Any, Any]) -> dict[tuple[Any, Any], Any]:
    """The observer of every (person, group); two persons or more, each of them once in every group."""
    _check_several(groups)
    nobody = [observer for observer in groups if observer not in persons]
    if nobody:
        raise InputError(f"observer {some_of(nobody)} has no person: say who it is.")
    found: dict[tuple[Any, Any], Any] = {}
    for observer, group in groups.items():
        place = (persons[observer], group)
        if place in found:
            raise InputError(
                f"person {place[0]!r} is in group {group!r} twice, as observer {found[place]} and {observer}: leave "
                "one of them out."
            )
        found[place] = observer
    everybody = list(dict.fromkeys(person for person, _ in found))
    for person in everybody:
        lacking = [group for group in dict.fromkeys(groups.values()) if (person, group) not in found]
        if lacking:
            raise InputError(
                f"person {person!r} is not in group {some_of(lacking)}: differences within persons need everybody in "
                "every group; leave the person out."
            )
    if len(everybody) < 2:
        raise InputError(
            f"{everybody[0]!r} is the only person: how much persons differ cannot be known; give two or more."
        )
    return found


def _check_several(groups: Mapping[Any, Any]) -> None:
    names = list(dict.fromkeys(groups.values()))
    if not names:
        raise InputError("no groups given: say for every observer which group is theirs.")
    if len(names) < 2:
        raise InputError(f"{names[0]!r} is the only group: a difference needs two or more.")
