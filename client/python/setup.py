"""Everything is in pyproject.toml; Debian's tools still start here."""

from setuptools import setup

setup()
