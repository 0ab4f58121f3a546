"""Releases of Spark and of the formats' libraries, and what differs between them.

No other package asks for a version. A difference is detected where it can be: by the method or the
class that is there, not by a number.
"""
