#!/usr/bin/env bash
# The paper's pre-training (appendix A.2), one schedule in two phases: 90 % of the steps at length 128, the rest at 512.
#
#     INPUT='corpus/*.txt' VOCAB=vocab.txt CONFIG=bert_config.json OUTPUT=/models/bert recipes/pretrain_two_phases.sh [flags]
#
# INPUT is documents: one sentence per line, a blank line between documents (data_prep/split_sentences.py makes them). The
# defaults are the paper's: a million steps of 256 sequences. STEPS, BATCH and the other variables below change them. Flags
# of this script go to run_pretraining.py in both phases (--use_tpu=true --tpu_name=..., --gradient_accumulation_steps=8).
# Rerun the same command to resume a run that was stopped or killed.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${INPUT:?documents, a path or a glob}" "${VOCAB:?vocab.txt}" "${CONFIG:?bert_config.json}" "${OUTPUT:?output folder}"
PYTHON=${PYTHON:-.venv/bin/python}
STEPS=${STEPS:-1000000} WARMUP=${WARMUP:-10000} BATCH=${BATCH:-256} RATE=${RATE:-1e-4}
SHORT=${SHORT:-128} LONG=${LONG:-512} SHORT_PREDICTIONS=${SHORT_PREDICTIONS:-20} LONG_PREDICTIONS=${LONG_PREDICTIONS:-77}
DUPE=${DUPE:-10} FILES=${FILES:-16}
SWITCH=$((STEPS * 9 / 10))

make_records() {  # length, predictions
    "$PYTHON" data_prep/create_pretraining_data.py --input_file="$INPUT" --vocab_file="$VOCAB" \
        --output_file="$OUTPUT/records-$1/train.tfrecord@$FILES" --max_seq_length="$1" \
        --max_predictions_per_seq="$2" --dupe_factor="$DUPE"
}

train() {  # length, predictions, folder, flags
    "$PYTHON" run_pretraining.py --do_train=true --bert_config_file="$CONFIG" --vocab_file="$VOCAB" \
        --input_file="$OUTPUT/records-$1/train.tfrecord-*" --max_seq_length="$1" --max_predictions_per_seq="$2" \
        --output_dir="$OUTPUT/$3" --train_batch_size="$BATCH" --learning_rate="$RATE" \
        --num_train_steps="$STEPS" --num_warmup_steps="$WARMUP" "${@:4}"
}

make_records "$SHORT" "$SHORT_PREDICTIONS"
train "$SHORT" "$SHORT_PREDICTIONS" phase1 --stop_at_step="$SWITCH" "$@"
make_records "$LONG" "$LONG_PREDICTIONS"
# Phase 2 starts from the weights, optimizer state and step of phase 1: one schedule over both. All position embeddings
# are kept.
train "$LONG" "$LONG_PREDICTIONS" phase2 --init_checkpoint="$OUTPUT/phase1/model.ckpt-$SWITCH" --keep_optimizer=true "$@"
