"""The search: which runs it has, which it makes, what it reports and keeps of them."""

import json
import os
import pathlib
import statistics

import pytest

from foundation.errors import BertError
from search import driver, folder
from search.run import read_metrics, runs_of
from search.script import Script
from search.settings import SearchSettings, canonical

STAND_IN = str(pathlib.Path(__file__).parent / "stand_in.py")
GRID = {"learning_rate": ("1e-05", "3e-05"), "train_batch_size": ("16",), "random_seed": ("1", "2")}
RUNS = [f"lr{rate}_batch16_epochs3_seed{seed}" for rate in ("1e-05", "3e-05") for seed in (1, 2)]


def settings(path, **changes):
    return SearchSettings(**{**GRID, "output_dir": str(path), **changes})


def search(path, *flags, **changes):
    return driver.run(settings(path, **changes), Script(STAND_IN, flags))


def runs(path, *flags, **changes):
    return runs_of(settings(path, **changes), Script(STAND_IN, flags))


def journal(path):
    return (path / "journal.txt").read_text().split()


def error(function, *arguments, **changes):
    with pytest.raises(BertError) as caught:
        function(*arguments, **changes)
    return str(caught.value)


def test_every_combination_is_run_once_and_the_best_is_marked(tmp_path):
    results = search(tmp_path / "s")
    assert journal(tmp_path / "s") == RUNS
    assert results.best.name == RUNS[3] and not results.failures
    best = json.loads((tmp_path / "s/best.json").read_text())
    assert (best["run"], best["metric"], best["values"]["random_seed"]) == (RUNS[3], "eval_accuracy", "2")
    assert round(best["figures"]["eval_accuracy"], 6) == 0.55
    assert os.readlink(tmp_path / "s/best") == RUNS[3]
    header, *rows = [line.split("\t") for line in (tmp_path / "s/results.tsv").read_text().splitlines()]
    assert header == ["run", "learning_rate", "train_batch_size", "num_train_epochs", "random_seed", "state", "metric",
                      "score", "seconds", "eval_accuracy", "eval_loss", "f1", "global_step"]
    assert [(row[0], row[5], round(float(row[7]), 6)) for row in rows] == [
        (RUNS[0], "finished", 0.52), (RUNS[1], "finished", 0.53), (RUNS[2], "finished", 0.54), (RUNS[3], "best", 0.55)]


def test_the_table_gives_mean_and_spread_over_the_seeds(tmp_path):
    table = search(tmp_path / "s").table.splitlines()
    deviation = f"{statistics.stdev([0.54, 0.55]):.4f}"
    assert table[0].split() == ["learning_rate", "train_batch_size", "num_train_epochs", "eval_accuracy:", "mean",
                                "std", "min", "max", "runs"]
    assert table[2].split() == ["3e-05", "16", "3", "0.5450", deviation, "0.5400", "0.5500", "2", "best"]
    assert table[1].split()[-1] == "2" and len(table) == 3


def test_one_seed_has_no_spread(tmp_path):
    results = search(tmp_path / "s", learning_rate=("1e-05",), random_seed=("1",))
    assert results.table.splitlines()[1].split()[4] == "-"


def test_finished_runs_are_not_repeated_and_more_values_make_only_the_new_ones(tmp_path, capsys):
    search(tmp_path / "s")
    search(tmp_path / "s")
    assert journal(tmp_path / "s") == RUNS
    results = search(tmp_path / "s", random_seed=("1", "2", "3"))
    assert journal(tmp_path / "s") == [*RUNS, "lr1e-05_batch16_epochs3_seed3", "lr3e-05_batch16_epochs3_seed3"]
    assert results.best.name == "lr3e-05_batch16_epochs3_seed3"
    assert ("6 runs (2 learning_rate × 1 train_batch_size × 1 num_train_epochs × 3 random_seed), 4 of them already "
            "finished.") in capsys.readouterr().out


def test_a_run_that_fails_is_named_and_the_remaining_ones_are_made(tmp_path, capsys):
    results = search(tmp_path / "s", "--fail_at=1e-05")
    assert journal(tmp_path / "s") == RUNS
    assert list(results.failures) == RUNS[:2] and results.best.name == RUNS[3]
    printed = capsys.readouterr().out
    assert f"{RUNS[0]}: failed, exit code 1\n    training\n    error: train.tsv, line 3: no label.\n" in printed
    assert (tmp_path / "s/results.tsv").read_text().count("\tfailed\t") == 2
    assert "no label" in (tmp_path / "s" / RUNS[0] / "output.log").read_text()
    search(tmp_path / "s", "--fail_at=1e-05")
    assert journal(tmp_path / "s") == RUNS + RUNS[:2]


def test_of_a_loss_the_lowest_is_best(tmp_path):
    results = search(tmp_path / "s", metric="eval_loss")
    assert results.best.name == RUNS[0] and results.table.splitlines()[1].endswith("best")


def test_an_unknown_metric_is_named(tmp_path):
    results = search(tmp_path / "s", metric="matthews")
    assert results.failures[RUNS[0]].endswith(
        "eval_results.txt: holds no 'matthews'. Give another --metric: eval_accuracy, eval_loss, f1, global_step.")
    assert results.best is None


def test_only_the_best_run_s_weights_are_kept_on_request(tmp_path):
    search(tmp_path / "s", learning_rate=("1e-05",))
    assert len(list((tmp_path / "s").glob("lr*/final_model/bert_model.ckpt.index"))) == 2
    search(tmp_path / "s", delete_models=True)
    assert [path.parts[-3] for path in (tmp_path / "s").glob("lr*/final_model/bert_model.ckpt.index")] == [RUNS[3]]


def test_runs_at_the_same_time_give_the_same_results(tmp_path):
    search(tmp_path / "a")
    results = search(tmp_path / "b", jobs=3)
    assert sorted(journal(tmp_path / "b")) == RUNS
    assert results.table == search(tmp_path / "a").table


def test_runs_share_features_train_and_evaluate_unless_the_command_differs(tmp_path):
    flags = runs(tmp_path, "--do_eval=false", "--task_name=cola")[0].command()[2:]
    assert {f"--cache_dir={tmp_path}/features", "--do_train=true", "--keep_checkpoint_max=1", "--learning_rate=1e-05",
            f"--output_dir={tmp_path}/{RUNS[0]}", "--task_name=cola"} <= set(flags)
    assert [flag for flag in flags if flag.startswith("--do_eval")] == ["--do_eval=false"]


def test_a_folder_belongs_to_one_search(tmp_path):
    search(tmp_path / "s", "--task_name=cola")
    message = error(search, tmp_path / "s", "--task_name=rte")
    assert "belongs to a search with other flags (--task_name=cola, --task_name=rte)" in message


def test_a_folder_is_used_by_one_search_at_a_time(tmp_path):
    with folder.claimed(str(tmp_path / "s"), Script(STAND_IN)):
        message = error(search, tmp_path / "s")
    assert "in use by another search, or by a run that another search started" in message


@pytest.mark.parametrize(("flag", "message"), [
    ("--learning_rate=1e-5", "--learning_rate is given after --, but the search sets it. Give it before --."),
    ("--output_dir=x", "--output_dir is given after --, but the search sets it. Give it before --."),
    ("cola", "'cola': only flags of stand_in.py may follow --, written --name=value."),
])
def test_flags_that_contradict_the_search_are_refused(flag, message, tmp_path):
    assert error(search, tmp_path / "s", flag) == message


@pytest.mark.parametrize(("changes", "message"), [
    ({"learning_rate": ()}, "--learning_rate: no value. Give one or more, separated by commas."),
    ({"vary": ("max_seq_length",)}, "--vary=max_seq_length: write --vary=flag=value,value."),
    ({"vary": ("random_seed=1",)}, "--vary=random_seed=1: --random_seed already has a list; write --random_seed=1."),
    ({"vary": ("a=1", "a=2")}, "--vary=a=2: --a already has a list; give all of its values at once."),
])
def test_lists_that_cannot_be_read_are_refused(changes, message, tmp_path):
    assert error(runs, tmp_path / "s", **changes) == message


def test_equal_numbers_have_one_spelling(tmp_path):
    assert [canonical(each) for each in ("5e-5", " 0.00005", "3.0", "16", "12345678", "0.1", "bio", "inf")] == [
        "5e-05", "5e-05", "3", "16", "12345678", "0.1", "bio", "inf"]
    assert len(runs(tmp_path, learning_rate=("5e-5", "0.00005"), random_seed=("1",))) == 1


def test_several_flags_can_be_varied_and_seeds_of_a_point_follow_each_other(tmp_path):
    names = [run.name for run in runs(tmp_path, learning_rate=("1e-5",), vary=("max_seq_length=64,128", "causal=true"))]
    assert names == [f"lr1e-05_batch16_epochs3_max_seq_length{length}_causaltrue_seed{seed}"
                     for length in (64, 128) for seed in (1, 2)]


def test_names_of_folders_hold_no_character_with_a_meaning_in_paths_or_globs(tmp_path):
    one = {"learning_rate": ("1e-5",), "random_seed": ("1",)}
    assert runs(tmp_path, **one, vary=("data_dir=a/b*",))[0].name == "lr1e-05_batch16_epochs3_data_dira-b-_seed1"
    message = error(runs, tmp_path, **one, vary=("data_dir=a/b,a*b",))
    assert message.startswith(f"Two runs would have the folder {tmp_path}/lr1e-05_batch16_epochs3_data_dira-b_seed1")


def test_what_is_not_a_metric_is_named_by_line(tmp_path):
    path = tmp_path / "eval_results.txt"
    path.write_text("f1 = 0.5\nhalf a li")
    assert error(read_metrics, str(path)) == f"{path}, line 2: not `name = number`."


@pytest.mark.parametrize("content", ["[]", "{}", '{"script": 1, "flags": []}', '{"script": "a", "flags": [1, "b"]}'])
def test_a_damaged_search_json_is_one_line(tmp_path, content):
    (tmp_path / "search.json").write_text(content)
    assert error(search, tmp_path).startswith(f"{tmp_path}/search.json: not a state file of this program (")


@pytest.mark.parametrize("content", [
    "1", "{}", '{"metric": "f1", "figures": {"f1": "1"}, "seconds": 1}',
    '{"metric": "f1", "figures": {}, "seconds": 1}',
    '{"metric": "f1", "figures": {"f1": 1%s}, "seconds": 1}' % ("0" * 400)])
def test_a_damaged_finished_json_is_one_line(tmp_path, content):
    run = runs(tmp_path)[0]
    os.makedirs(run.folder)
    pathlib.Path(run.folder, folder.FINISHED).write_text(content)
    message = error(lambda: run.finished)
    assert message.startswith(f"{run.folder}/finished.json: ") and message.endswith("Remove it to make this run again.")


@pytest.mark.parametrize(("results", "task", "problem"), [
    ("", "{}", "eval_results.txt: holds no metrics."),
    ("f1 = 0.5\nloss = 1\nem = 0.5\n", "[]", "task.json: not a state file of this program"),
    ("f1 = 0.5\nloss = 1\nem = 0.5\n", '{"metric": ["f1"]}', "Give --metric, one of f1, loss, em."),
])
def test_damaged_results_of_a_run_are_one_line(tmp_path, results, task, problem):
    run = runs(tmp_path)[0]
    os.makedirs(run.folder)
    pathlib.Path(run.folder, "eval_results.txt").write_text(results)
    pathlib.Path(run.folder, "task.json").write_text(task)
    assert problem in error(run.finish, 1.0)
