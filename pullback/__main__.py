"""`python -m pullback`."""

import sys

from pullback.cli import main

sys.exit(main())
