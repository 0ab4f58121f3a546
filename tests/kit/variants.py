"""Variants of a test."""

import pytest


def slow(*variants):
    """Return values of an argument with which a test is slow.

    Another value goes the same way through our code, and is tested in any run.
    """
    return [pytest.param(variant, marks=pytest.mark.slow) for variant in variants]


def slow_but(*often, of):
    """Return values of several arguments, each a tuple: all are slow but some."""
    return [each if each in often else pytest.param(*each, marks=pytest.mark.slow) for each in of]
