"""Every program that writes in place, by name."""

from tests.programs import inplace_grids, inplace_linear

PROGRAMS = {program.name: program for module in (inplace_linear, inplace_grids) for program in module.PROGRAMS}
