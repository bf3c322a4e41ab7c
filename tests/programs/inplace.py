"""Every program that writes in place, by name."""

from tests.programs import inplace_grids, inplace_linear, inplace_methods

PROGRAMS = {
    program.name: program for module in (inplace_linear, inplace_grids, inplace_methods) for program in module.PROGRAMS
}
