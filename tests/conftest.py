"""Properties are tried without a clock: the first texts that are drawn may take seconds."""

from hypothesis import HealthCheck, settings

from tests.kit import jvm

settings.register_profile(
    "zadapter", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip
settings.load_profile("zadapter")
jvm.use_fast_compiler()
