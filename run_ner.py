"""Fine-tunes BERT to label words, as named entities; evaluates as conlleval does; predicts.

    python run_ner.py --data_dir=conll2003 --init_checkpoint=cased_L-12_H-768_A-12 --do_lower_case=false \\
        --document_context=true --do_train=true --do_eval=true --output_dir=/models/ner
    python run_ner.py --do_predict=true --test_file=new.txt --output_dir=/models/ner

A line is a word, other columns if any, and its tag (BIO or IOB1), by tabs or by spaces; an empty line ends a sentence,
`-DOCSTART-` a document. What is predicted may be words alone. The paper's feature-based approach, the encoder frozen:

    python run_ner.py --data_dir=conll2003 --init_checkpoint=cased_L-12_H-768_A-12 --do_lower_case=false \\
        --document_context=true --feature_based=true --features=concat_last_four --do_train=true --do_eval=true \\
        --output_dir=/models/ner_features
"""

from absl import flags

from finetuning import data_flags, driver
from foundation import command
from modeling import feature_tagger
from tasks.ner import task as ner
from training import flags as training_flags

# A BiLSTM that begins at random learns too little at the rate that suits a pre-trained model.
FEATURE_BASED_LEARNING_RATE = 1e-3

training_flags.define_finetuning()
flags.adopt_module_key_flags(training_flags)  # --help shows them too
data_flags.define_files("Folder with train.txt, dev.txt (or valid.txt) and test.txt, or CoNLL-2003's eng.train, "
                        "eng.testa and eng.testb.")
flags.adopt_module_key_flags(data_flags)
flags.DEFINE_list("labels", None, "The tags, O with them, in the order of their ids; those of the training set where "
                  "not given.")
flags.DEFINE_enum("tag_scheme", "auto", ("auto", "bio", "iob1"), "How tags are written: bio begins each entity with "
                  "B-; iob1 only one right behind another of its type. auto: as in the training set.")
flags.DEFINE_bool("document_context", False, "Fill each sequence with the words around its sentence.")
flags.DEFINE_bool("feature_based", False, "Train a BiLSTM on the vectors of the encoder, which stays as it is; "
                  f"--learning_rate is {FEATURE_BASED_LEARNING_RATE:g} where not given.")
flags.DEFINE_enum("features", "concat_last_four", tuple(feature_tagger.LAYERS), "Vectors for --feature_based.")
flags.DEFINE_integer("lstm_size", 768, "Units of the BiLSTM in each direction, for --feature_based.", lower_bound=1)


def main(_):
    """Flags to a task and settings to one call."""
    values = flags.FLAGS
    settings = data_flags.settings(ner.NerSettings, values)
    if settings.feature_based and not values["learning_rate"].present:
        values.learning_rate = FEATURE_BASED_LEARNING_RATE
    print(driver.run(ner.NerTask(settings), training_flags.finetuning(values)).summary())


if __name__ == "__main__":
    command.run(main)
