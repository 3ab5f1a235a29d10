"""Profiles of a reproduction: number and length of the runs of a figure."""

from tresse.sweep import Profile

QUICK = Profile("quick", runs=4, overrides={"measure": "30s"})
"""A look: small enough for a coffee break on two cores."""

PAPER = Profile("paper", runs=24, overrides={"measure": "300s"})
"""As in the papers."""

PROFILES = {profile.name: profile for profile in (QUICK, PAPER)}
