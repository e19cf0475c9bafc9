"""Lets the tests of this room import the modules that make their models (`import scripted`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
