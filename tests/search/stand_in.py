"""Stands in for a fine-tuning script: notes that it ran, and leaves metrics that follow from its flags.

--fail_at=<learning rate>: runs with it fail. --wait_at=<learning rate>, --until=<file>: runs with it wait for the file.
"""

import json
import os
import signal
import sys
import time


def main():
    flags = dict(each.removeprefix("--").split("=", 1) for each in sys.argv[1:])
    folder = flags["output_dir"]
    os.makedirs(os.path.join(folder, "final_model"), exist_ok=True)
    journal = os.path.join(os.path.dirname(folder), "journal.txt")
    with open(journal, "a") as file:
        file.write(os.path.basename(folder) + "\n")
    print("training", flush=True)
    if flags.get("fail_at") == flags["learning_rate"]:
        print("error: train.tsv, line 3: no label.", file=sys.stderr)
        sys.exit(1)
    if flags.get("wait_at") == flags["learning_rate"]:
        signal.signal(signal.SIGTERM, lambda *_: stop(folder))
        while not os.path.exists(flags["until"]):
            time.sleep(0.05)
            print("step", flush=True)
    with open(os.path.join(folder, "final_model", "bert_model.ckpt.index"), "w") as file:
        file.write("weights")
    accuracy = 0.5 + 1000 * float(flags["learning_rate"]) + 0.01 * int(flags["random_seed"])
    with open(os.path.join(folder, "task.json"), "w") as file:
        json.dump({"metric": "eval_accuracy"}, file)
    with open(os.path.join(folder, "eval_results.txt"), "w") as file:
        file.write(f"eval_accuracy = {accuracy}\neval_loss = {accuracy / 2}\nf1 = 0.5\nglobal_step = 3\n")


def stop(folder):
    with open(os.path.join(folder, "saved"), "w"):
        sys.exit(1)


if __name__ == "__main__":
    main()
