"""Every program that writes nothing in place, by name."""

from tests.programs import learning, physics, statistics

PROGRAMS = {
    program.name: program for module in (learning, statistics, physics) for program in module.PROGRAMS
}
