"""`python -m tresse` is `tresse-lab`."""

from tresse.cli import main

main(prog_name="tresse-lab")
