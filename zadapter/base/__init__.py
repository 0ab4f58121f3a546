"""Helpers of all packages: names, sizes, locations, ranks, errors of the JVM."""
