"""The pack's tests run in the pack's own virtualenv: ``make test-policies``."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pulumi_policy") else ["*"]
