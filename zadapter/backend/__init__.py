"""The contract of a backend, what formats declare, plug-ins, and the commit loop."""
