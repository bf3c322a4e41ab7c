"""What a traced function rests on, as words for native code to compare."""

from typing import Any

from pullback import driver
from pullback.runtime.watch import Watch, Words
from pullback.tracer.environment import Environment
from pullback.tracer.outside import MISSING, Attributes, Container, Name, slot_of


def watch_of(environment: Environment) -> Watch | None:
    """The table for an environment; None where there is nothing to compare, or where not all of it is words."""
    if environment.is_empty or environment.references:
        return None

    def fill(words: Words) -> bool:
        added = [_add_name(words, name) for name in environment.names]
        added += [words.function(definition.function) for definition in environment.definitions]
        added += [_add_attributes(words, attributes) for attributes in environment.attributes]
        added += [_add_container(words, container) for container in environment.containers]
        added += [words.elements(content.array) for content in environment.contents]
        return all(added)

    return driver.runtime().watch(fill)


def _add_name(words: Words, name: Name) -> bool:
    if isinstance(name.holder, dict):
        return name.name in name.holder and words.item(name.holder, name.name)
    return words.cell(name.holder)


def _add_container(words: Words, container: Container) -> bool:
    value: Any = container.value
    if isinstance(value, list):
        return words.sequence(value)
    return isinstance(value, dict) and words.items(value)


def _add_attributes(words: Words, attributes: Attributes) -> bool:
    thing = attributes.thing
    space = words.space(thing) if hasattr(thing, "__dict__") else {}
    if space is None:
        return False
    added = [words.kind(thing)]
    for name, value in zip(attributes.names, attributes.values, strict=True):
        slot = slot_of(thing, name)
        if name in space:
            added.append(words.item(space, name))
        elif slot is not None:
            added.append(value is not MISSING and words.slot(thing, slot))
        else:
            added.append(hasattr(thing, "__dict__") and words.size(space))
    return all(added)
