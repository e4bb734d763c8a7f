"""One device, two devices, two machines, micro-batches: the same losses and the same weights."""

import json

import numpy as np
import pytest

from modeling.checkpoints import google
from tests.training.pretraining_process import finish, from_dict, settings, start, start_cluster
from training import metrics_log, pretraining

TOLERANCE = 5e-5


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Configuration, records and the single-device run that the others are held to."""
    from tests.conftest import TINY_CONFIG, tiny_arrays, write_records

    folder = tmp_path_factory.mktemp("strategies")
    config, records = folder / "bert_config.json", folder / "tiny.tfrecord"
    config.write_text(json.dumps(TINY_CONFIG))
    write_records(records, tiny_arrays())
    single = folder / "single"
    pretraining.run(from_dict(settings(config, records, single, loop={"iterations_per_loop": 2})))
    return config, records, single


def losses(folder):
    return {line["step"]: line["loss"] for line in metrics_log.read(str(folder)) if line["kind"] == "train"}


def assert_same_run(folder, expected):
    run, single = google.read(f"{folder}/model.ckpt-6"), google.read(f"{expected}/model.ckpt-6")
    assert run.names == single.names
    for name in run.names:
        np.testing.assert_allclose(run.get(name), single.get(name), atol=TOLERANCE, err_msg=name)
    assert losses(folder).keys() == losses(expected).keys()
    for step, loss in losses(expected).items():
        assert losses(folder)[step] == pytest.approx(loss, abs=TOLERANCE)


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_two_mirrored_devices_train_as_one(shared, tmp_path, optimizer):
    config, records, single = shared

    def values(folder, **hardware):
        return settings(config, records, folder, hardware=hardware, loop={"iterations_per_loop": 2},
                        optimization={"optimizer": optimizer})

    if optimizer == "lamb":
        single = tmp_path / "single"
        pretraining.run(from_dict(values(single)))
    assert "2 CPU replicas" in finish(start(values(tmp_path / "run", strategy="mirrored"), logical_devices=2))
    assert_same_run(tmp_path / "run", single)


def test_two_machines_train_as_one_and_only_the_first_writes(shared, tmp_path):
    config, records, single = shared
    values = settings(config, records, tmp_path / "run", loop={"iterations_per_loop": 2}, do_eval=True)
    workers = start_cluster(values, 2)
    first, second = [finish(worker) for worker in workers]
    assert "2 CPU replicas on 2 machines" in first
    assert "step" not in second.splitlines()[0]
    assert_same_run(tmp_path / "run", single)
    evaluations = [json.loads(printed.splitlines()[-1])["evaluation"] for printed in (first, second)]
    assert evaluations[0] == pytest.approx(evaluations[1])


def test_micro_batches_add_up_to_the_batch(shared, tmp_path):
    config, records, single = shared
    values = settings(config, records, tmp_path / "run", optimization={"gradient_accumulation_steps": 4},
                      loop={"iterations_per_loop": 2})
    pretraining.run(from_dict(values))
    assert_same_run(tmp_path / "run", single)


def test_forward_and_backward_pass_compiled_by_xla_train_the_same(shared, tmp_path):
    config, records, single = shared
    values = settings(config, records, tmp_path / "run", pack="false", hardware={"xla": "true", "precision": "float32"},
                      loop={"iterations_per_loop": 2})
    pretraining.run(from_dict(values))
    assert_same_run(tmp_path / "run", single)


def test_steps_in_one_call_do_not_change_the_run(shared, tmp_path):
    config, records, single = shared
    pretraining.run(from_dict(settings(config, records, tmp_path / "run", loop={"iterations_per_loop": 6})))
    run, expected = google.read(f"{tmp_path}/run/model.ckpt-6"), google.read(f"{single}/model.ckpt-6")
    for name in expected.names:
        np.testing.assert_allclose(run.get(name), expected.get(name), atol=1e-6, err_msg=name)
