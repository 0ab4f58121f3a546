"""A sort whose rows lose their last columns without a copy, and where it can be relied on."""
