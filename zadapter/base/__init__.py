"""Small helpers of the whole project: names, sizes, locations, ranks, errors of the JVM."""
