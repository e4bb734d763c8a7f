"""TF_CONFIG, which TensorFlow would read with tracebacks of its own: what does not describe a cluster is one line."""

import json

import pytest

from foundation.errors import BertError
from training import devices

CLUSTER = {"worker": ["a:1", "b:2"]}


@pytest.mark.parametrize("value", [
    "{", "[]", "3", {"cluster": CLUSTER}, {"cluster": [], "task": {"type": "worker", "index": 0}},
    *({"cluster": cluster, "task": {"type": "worker", "index": 0}} for cluster in (
        {"worker": "a:1"}, {"worker": [1]}, {"worker": ["\ud800:1"]}, {**CLUSTER, "\udcff": ["c:3"]})),
    *({"cluster": CLUSTER, "task": task} for task in (
        None, {"type": "chief", "index": 0}, {"type": "worker", "index": 2}, {"type": "worker", "index": True},
        {"type": ["worker"], "index": 0})),
], ids=repr)
def test_what_does_not_describe_a_cluster_is_one_line(monkeypatch, value):
    monkeypatch.setenv("TF_CONFIG", value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(BertError, match=r"^TF_CONFIG") as error:
        devices._cluster()
    assert "\n" not in str(error.value)


def test_cluster(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}}))
    assert devices._cluster() == CLUSTER
