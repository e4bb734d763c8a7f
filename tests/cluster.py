"""Several machines on loopback."""

import json
import socket


def environments(machines):
    """TF_CONFIG of each machine of a cluster on free ports, the first machine's first: dicts for the environment."""
    listening = [socket.create_server(("localhost", 0)) for _ in range(machines)]
    cluster = {"worker": [f"localhost:{each.getsockname()[1]}" for each in listening]}
    for each in listening:
        each.close()
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})}
            for index in range(machines)]
