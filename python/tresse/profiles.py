"""Profiles of a reproduction: number and length of the runs of a figure."""

from tresse.sweep import Profile

QUICK = Profile("quick", runs=4, overrides={"measure": "30s"})
"""A quick overview: few and short runs."""

PAPER = Profile("paper", runs=24, overrides={"measure": "300s"})
"""Numbers and lengths of runs as in the papers."""

PROFILES = {profile.name: profile for profile in (QUICK, PAPER)}
