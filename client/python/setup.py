"""Calls setuptools for Debian's tools; pyproject.toml holds all settings."""

from setuptools import setup

setup()
