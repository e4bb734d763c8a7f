"""The search: which runs there are, which are made, what is said and kept of them."""

import dataclasses
import json
import os
import pathlib
import statistics

import pytest

from foundation.errors import BertError
from search import results, search
from search.search import SearchSettings

STAND_IN = str(pathlib.Path(__file__).parent / "stand_in.py")
GRID = {"learning_rate": ("1e-05", "3e-05"), "train_batch_size": ("16",), "random_seed": ("1", "2")}
RUNS = [f"lr{rate}_batch16_seed{seed}" for rate in ("1e-05", "3e-05") for seed in (1, 2)]


def settings(folder, *flags, grid=GRID, **changes):
    return SearchSettings(STAND_IN, flags, grid, str(folder), **changes)


def journal(folder):
    return (folder / "journal.txt").read_text().split()


def error(function):
    with pytest.raises(BertError) as caught:
        function()
    return str(caught.value)


def test_every_combination_is_run_once_and_the_best_is_marked(tmp_path):
    results = search.run(settings(tmp_path / "s"))
    assert journal(tmp_path / "s") == RUNS
    assert results.best.name == RUNS[3] and not results.failures
    best = json.loads((tmp_path / "s/best.json").read_text())
    assert (best["run"], best["metric"], best["values"]["random_seed"]) == (RUNS[3], "eval_accuracy", "2")
    assert os.readlink(tmp_path / "s/best") == RUNS[3]
    header, *rows = [line.split("\t") for line in (tmp_path / "s/results.tsv").read_text().splitlines()]
    assert header == ["run", "learning_rate", "train_batch_size", "random_seed", "state", "metric", "score", "seconds",
                      "eval_accuracy", "eval_loss", "f1", "global_step"]
    assert [(row[0], row[4], round(float(row[6]), 6)) for row in rows] == [
        (RUNS[0], "finished", 0.52), (RUNS[1], "finished", 0.53), (RUNS[2], "finished", 0.54), (RUNS[3], "best", 0.55)]


def test_the_table_gives_mean_and_spread_over_the_seeds(tmp_path):
    table = search.run(settings(tmp_path / "s")).table.splitlines()
    spread = f"{statistics.stdev([0.54, 0.55]):.4f}"
    assert table[0].split() == ["learning_rate", "train_batch_size", "eval_accuracy:", "mean", "std", "min", "max",
                                "runs"]
    assert table[2].split() == ["3e-05", "16", "0.5450", spread, "0.5400", "0.5500", "2", "best"]
    assert table[1].split()[-1] == "2" and len(table) == 3


def test_one_seed_has_no_spread(tmp_path):
    grid = {"learning_rate": ("1e-05",), "random_seed": ("1",)}
    assert search.run(settings(tmp_path / "s", grid=grid)).table.splitlines()[1].split()[2] == "-"


def test_finished_runs_are_not_made_again_and_more_values_make_only_the_new_ones(tmp_path, capsys):
    search.run(settings(tmp_path / "s"))
    search.run(settings(tmp_path / "s"))
    assert journal(tmp_path / "s") == RUNS
    results = search.run(settings(tmp_path / "s", grid={**GRID, "random_seed": ("1", "2", "3")}))
    assert journal(tmp_path / "s") == [*RUNS, "lr1e-05_batch16_seed3", "lr3e-05_batch16_seed3"]
    assert results.best.name == "lr3e-05_batch16_seed3"
    said = capsys.readouterr().out
    assert "6 runs (2 learning_rate × 1 train_batch_size × 3 random_seed), 4 of them finished before." in said


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path, capsys):
    results = search.run(settings(tmp_path / "s", "--fail_at=1e-05"))
    assert journal(tmp_path / "s") == RUNS
    assert list(results.failures) == RUNS[:2] and results.best.name == RUNS[3]
    said = capsys.readouterr().out
    assert f"{RUNS[0]}: failed, exit code 1\n    training\n    error: train.tsv, line 3: no label.\n" in said
    assert (tmp_path / "s/results.tsv").read_text().count("\tfailed\t") == 2
    assert "no label" in (tmp_path / "s" / RUNS[0] / "output.log").read_text()
    search.run(settings(tmp_path / "s", "--fail_at=1e-05"))
    assert journal(tmp_path / "s") == RUNS + RUNS[:2]


def test_of_a_loss_the_least_is_best(tmp_path):
    results = search.run(settings(tmp_path / "s", metric="eval_loss"))
    assert results.best.name == RUNS[0] and results.table.splitlines()[1].endswith("best")


def test_a_figure_that_is_not_there_is_named(tmp_path):
    results = search.run(settings(tmp_path / "s", metric="matthews"))
    assert results.failures[RUNS[0]].endswith(
        "eval_results.txt: holds no 'matthews'. Name another --metric: eval_accuracy, eval_loss, f1, global_step.")
    assert results.best is None


def test_only_the_best_run_s_weights_are_kept_on_request(tmp_path):
    grid = {**GRID, "learning_rate": ("1e-05",)}
    search.run(settings(tmp_path / "s", grid=grid))
    assert len(list((tmp_path / "s").glob("lr*/final_model/bert_model.ckpt.index"))) == 2
    search.run(settings(tmp_path / "s", delete_models=True))
    assert [path.parts[-3] for path in (tmp_path / "s").glob("lr*/final_model/bert_model.ckpt.index")] == [RUNS[3]]


def test_several_at_once_come_to_the_same(tmp_path):
    search.run(settings(tmp_path / "a"))
    results = search.run(settings(tmp_path / "b", jobs=3))
    assert sorted(journal(tmp_path / "b")) == RUNS
    assert results.table == search.run(settings(tmp_path / "a")).table


def test_runs_share_features_train_and_evaluate_unless_told_otherwise(tmp_path):
    each = search.runs_of(settings(tmp_path, "--do_eval=false", "--task_name=cola"))[0]
    flags = each.command()[2:]
    assert {f"--cache_dir={tmp_path}/features", "--do_train=true", "--keep_checkpoint_max=1", "--learning_rate=1e-05",
            f"--output_dir={tmp_path}/{RUNS[0]}", "--task_name=cola"} <= set(flags)
    assert [flag for flag in flags if flag.startswith("--do_eval")] == ["--do_eval=false"]


def test_a_folder_belongs_to_one_search(tmp_path):
    search.run(settings(tmp_path / "s", "--task_name=cola"))
    message = error(lambda: search.run(settings(tmp_path / "s", "--task_name=rte")))
    assert "belongs to a search with other flags (--task_name=cola, --task_name=rte)" in message


def test_a_folder_is_of_one_search_at_a_time(tmp_path):
    with search._claimed(_made(settings(tmp_path / "s"))):
        message = error(lambda: search.run(settings(tmp_path / "s")))
    assert "another search, or a run that it began, is at work there" in message


def _made(made):
    os.makedirs(made.output_dir)
    return made


@pytest.mark.parametrize(("flag", "message"), [
    ("--learning_rate=1e-5", "--learning_rate stands behind --, but the search sets it. Give it before --."),
    ("--output_dir=x", "--output_dir stands behind --, but the search sets it. Give it before --."),
    ("cola", "'cola': behind -- stand flags of stand_in.py, as --name=value."),
])
def test_flags_that_contradict_the_search_are_refused(flag, message, tmp_path):
    assert error(lambda: search.run(settings(tmp_path / "s", flag))) == message


def test_values_have_one_spelling():
    assert [search.canonical(each) for each in ("5e-5", " 0.00005", "3.0", "16", "12345678", "0.1", "bio")] == [
        "5e-05", "5e-05", "3", "16", "12345678", "0.1", "bio"]


def test_names_of_folders_hold_no_character_that_paths_or_globs_read(tmp_path):
    varied = dataclasses.replace(settings(tmp_path), grid={"data_dir": ("a/b,*",), "random_seed": ("1",)})
    assert search.runs_of(varied)[0].name == "data_dira-b--_seed1"
    varied.grid["data_dir"] = ("a/b", "a,b")
    assert error(lambda: search.runs_of(varied)).startswith(f"Two runs would have the folder {tmp_path}/data_dira-b_s")


def test_what_is_no_figure_is_named_by_line(tmp_path):
    (tmp_path / "eval_results.txt").write_text("f1 = 0.5\nhalf a li")
    path = str(tmp_path / "eval_results.txt")
    assert error(lambda: results.read_figures(path)) == f"{path}, line 2: not `name = number`."
