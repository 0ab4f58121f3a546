"""Start of Spark's JVM: Java, jars, logging, and the session's first settings."""
