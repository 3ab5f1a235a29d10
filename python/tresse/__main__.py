"""Entry point of `python -m tresse`, which is the same as `tresse-lab`."""

from tresse.cli import main

main(prog_name="tresse-lab")
