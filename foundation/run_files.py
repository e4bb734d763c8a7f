"""What the files of a run's folder and of a checkpoint's folder are called, for every room that reads or writes them.

    run.json                  the settings that decide the result; a command with others is refused
    bert_config.json          the model's sizes
    vocab.txt                 its vocabulary: a run's folder is a checkpoint to start from at any time
    task.json                 what the task needs in addition to the weights, such as labels (fine-tuning)
    model.ckpt-1000.*         weights, optimizer slots and global_step, by the release's variable names
    checkpoint                the newest of them, as TensorFlow writes it
    evaluations.json          the evaluations so far, and best_model/ the weights of the best (fine-tuning)
    features/                 tokenised data sets (fine-tuning)
    metrics.jsonl             every report, a line each; train/ and eval/ hold the same for TensorBoard
    eval_results.txt          the last evaluation, as the release writes it
    learning_curve.png        drawn from metrics.jsonl
    run_finished.json         that training came to its end, and at which step
    unfinished                in the folder of a conversion that was cut short; no checkpoint is read there
    final_model/              bert_config.json, vocab.txt, bert_model.ckpt.*, laid out as a released checkpoint
"""

RUN = "run.json"
CONFIG = "bert_config.json"
VOCABULARY = "vocab.txt"
TASK = "task.json"
RUN_CHECKPOINT = "model.ckpt"  # before `-<step>`
NEWEST_CHECKPOINT = "checkpoint"
RELEASED_CHECKPOINT = "bert_model.ckpt"
EVALUATIONS = "evaluations.json"
BEST_MODEL = "best_model"
FEATURES = "features"
METRICS = "metrics.jsonl"
EVAL_RESULTS = "eval_results.txt"
LEARNING_CURVE = "learning_curve.png"
RUN_FINISHED = "run_finished.json"
FINAL_MODEL = "final_model"
UNFINISHED = "unfinished"
GLOBAL_STEP = "global_step"  # the variable that counts updates
