"""Tokens of the program (argument 1) beside those of Hugging Face's tokenizers and Keras's Tokenizer, on random Unicode."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

PROGRAM = sys.argv[1]
random.seed(1)
# Characters of Unicode 14 only: later ones are letters to some and nothing to others.
POOLS = [range(32, 127)] * 6 + [[9, 10, 13, 32, 32, 32, 0xA0, 0x2003, 0x3000, 0x85, 0x1C]] * 3 + [
    range(0xA1, 0x530), range(0x900, 0xA00), range(0x4E00, 0x4F00), range(0x1F600, 0x1F640), range(0x2000, 0x2100),
    range(0x300, 0x330), [0x17F, 39, 115, 39, 83], range(48, 58)]


def some_text(most):
    # Without U+09FD and U+09FE, a sign and a mark that the older tables of tokenizers lack.
    codes = (random.choice(random.choice(POOLS)) for _ in range(random.randint(0, most)))
    return "".join(chr(code) for code in codes if unicodedata.category(chr(code)) != "Cn" and code not in (0x9FD, 0x9FE))


TEXTS = [some_text(60) for _ in range(2000)] + [
    "'s 'S 't'll I'LL we're  \n\n  x", "   ", "a  b\n\n c\t\td", "", "'", " '", "<|end|>hi<|end|>", "123456789 1a2b", "a" * 3000]
SENTENCES = ["the quick brown fox jumps over the lazy dog", "it's 2 late, we'll see; WON'T we?", "low lower lowest newest"] * 20


UPPER, LOWER, ENDING = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
O200K = "|".join([BEFORE + UPPER + "*" + LOWER + "+" + ENDING, BEFORE + UPPER + "+" + LOWER + "*" + ENDING, r"\p{N}{1,3}",
                  r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def run(folder, mode, texts, *arguments):
    path = os.path.join(folder, "texts")
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write("".join(text + "\0" for text in texts))
    done = subprocess.run([PROGRAM, mode, path, *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{mode}: {done.stderr.decode()}")
    return done.stdout.decode()


def rows(text):
    return [[int(each) for each in line.split()] for line in text.split("\n")[:-1]]


def same(what, got, expected):
    for i, (ours, theirs) in enumerate(zip(got, expected)):
        if ours != theirs:
            sys.exit(f"{what}, text {i}: {ours}, expected {theirs}")
    if len(got) != len(expected):
        sys.exit(f"{what}: {len(got)} texts, expected {len(expected)}")
    print(f"{what}: {len(got)} texts agree")


def byte_pairs(folder):
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    def cut(digits):
        pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits +
                   r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    ways = {"gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False), "prefix": pre_tokenizers.ByteLevel(add_prefix_space=True),
            "cl100k": cut(r"\p{N}{1,3}"), "qwen2": cut(r"\p{N}"), "nfc": cut(r"\p{N}"), "nfkc and lower case": cut(r"\p{N}"),
            "without accents": pre_tokenizers.ByteLevel(add_prefix_space=True),
            "o200k": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), behavior="isolated"),
                                              pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])}
    changes = {"nfc": normalizers.NFC(), "nfkc and lower case": normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
               "without accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.NFKD()])}
    for name, way in ways.items():
        theirs = Tokenizer(models.BPE())
        theirs.pre_tokenizer = way
        if name in changes:
            theirs.normalizer = changes[name]
        theirs.train_from_iterator(SENTENCES + TEXTS[:200], trainers.BpeTrainer(
            vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        if name in changes:  # looked for in normalized texts, and in those that are not
            theirs.add_tokens([AddedToken("I", normalized=True, single_word=True), AddedToken("\u00c9", normalized=True),
                               AddedToken("\u0130", normalized=False), AddedToken("\u00df", normalized=False, lstrip=True)])
        path = os.path.join(folder, name + ".json")
        theirs.save(path)
        expected = [theirs.encode(text, add_special_tokens=False).ids for text in TEXTS]
        same("tokenizer.json, " + name, rows(run(folder, "encode", TEXTS, path)), expected)
        written = os.path.join(folder, "written.json")
        run(folder, "save", [], path, written)
        again = Tokenizer.from_file(written)
        same("written again, " + name, [again.encode(text, add_special_tokens=False).ids for text in TEXTS], expected)
        if name != "gpt2":
            continue
        theirs.model.save(folder)
        two = [os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")]
        plain = [text for text in TEXTS if "<|end|>" not in text]
        same("vocab.json", rows(run(folder, "encode", plain, *two)), [theirs.encode(text).ids for text in plain])
        ours = os.path.join(folder, "ours.json")
        run(folder, "learn", SENTENCES + TEXTS[:200], "600", ours)
        read = Tokenizer.from_file(ours)
        if read.get_vocab() != theirs.get_vocab():
            sys.exit("the vocabulary that was learned is another")
        same("learned", [read.encode(text).ids for text in TEXTS], expected)


def sentence_pieces(folder):
    """The tokenizers of Llama 2 (blanks by normalizers) and of what came after it (Metaspace)."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    marks = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    ways = {"llama 2": (marks, None)}
    for scheme in ("first", "always", "never"):
        for split in (False, True):
            ways[f"metaspace {scheme} {split}"] = (None, pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split))
    bytes_of_256 = [f"<0x{b:02X}>" for b in range(256)]
    for name, (normalizer, pre_tokenizer) in ways.items():
        for fallback in (True, False):
            theirs = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
            if normalizer is not None:
                theirs.normalizer = normalizer
            theirs.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace(split=True)  # a trainer wants words
            theirs.train_from_iterator(SENTENCES + TEXTS[:50], trainers.BpeTrainer(
                vocab_size=700, special_tokens=["<unk>", "<s>"] + (bytes_of_256 if fallback else []), show_progress=False))
            path = os.path.join(folder, "pieces.json")
            theirs.save(path)
            with open(path, encoding="utf-8") as file:
                written = json.load(file)
            # The tokens of bytes are no added ones in such files, and Llama 2's has no pre_tokenizer.
            written["added_tokens"] = [token for token in written["added_tokens"] if token["content"] not in bytes_of_256]
            if pre_tokenizer is None:
                written["pre_tokenizer"] = None
            with open(path, "w", encoding="utf-8") as file:
                json.dump(written, file)
            theirs = Tokenizer.from_file(path)
            strip = [] if "never" in name else [decoders.Strip(" ", 1, 0)]
            theirs.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
            theirs.add_tokens([AddedToken("</x>", normalized=False, special=True)])
            theirs.save(path)
            texts = TEXTS + ["<s>hi</x> you</x>", " a", "  a", "\u2581a", "a\u2581 b", "</x>", "x</x>", "<0x41>"]
            expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
            what = f"{name}, {'bytes' if fallback else 'unknown'}"
            same(what, rows(run(folder, "encode", texts, path)), expected)
            if fallback:
                same("decoded, " + what, run(folder, "decode", texts, path).split("\0")[:-1],
                     [theirs.decode(ids, skip_special_tokens=False) for ids in expected])
            ours = os.path.join(folder, "ours.json")
            run(folder, "save", [], path, ours)
            read = Tokenizer.from_file(ours)
            same("written again, " + what, [read.encode(text, add_special_tokens=False).ids for text in texts], expected)


def unigrams(folder):
    """Unigram models as T5, XLM-R and ALBERT have them, with SentencePiece's own rules where it is installed."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    marked = pre_tokenizers.Metaspace(prepend_scheme="always")
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    albert = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
              normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")]
    ways = {"plain": (None, marked), "first": (None, pre_tokenizers.Metaspace(prepend_scheme="first")),
            "never, unsplit": (normalizers.Strip(), pre_tokenizers.Metaspace(prepend_scheme="never", split=False)),
            "words": (normalizers.NFKC(), words), "albert": (normalizers.Sequence(albert), marked)}
    try:
        import io

        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2 as proto

        for rule in ("nmt_nfkc", "nfkc_cf"):
            out = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES * 3), model_writer=out, vocab_size=60, minloglevel=2,
                                                     hard_vocab_limit=False, normalization_rule_name=rule)
            model = proto.ModelProto()
            model.ParseFromString(out.getvalue())
            table = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
            ways[f"t5 {rule}"] = (table, words)
            ways[f"xlm-r {rule}"] = (normalizers.Sequence([table, normalizers.Replace(Regex(" {2,}"), " ")]), marked)
    except ImportError as missing:
        print(f"left out: {missing}")
    bytes_of_256 = [f"<0x{b:02X}>" for b in range(256)]
    for name, (normalizer, pre_tokenizer) in ways.items():
        trained = Tokenizer(models.Unigram())
        trained.pre_tokenizer = pre_tokenizer if "unsplit" not in name else marked
        trained.train_from_iterator(SENTENCES + TEXTS[:30], trainers.UnigramTrainer(
            vocab_size=800, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False))
        vocabulary = [(token, score) for token, score in json.loads(trained.to_str())["model"]["vocab"]]
        for fallback in (False, True):
            extra = [(token, -30.0) for token in bytes_of_256] if fallback else []
            theirs = Tokenizer(models.Unigram(vocabulary + extra, unk_id=0, byte_fallback=fallback))
            if normalizer is not None:
                theirs.normalizer = normalizer
            theirs.pre_tokenizer = pre_tokenizer
            strip = [] if "never" in name else [decoders.Strip(" ", 1, 0)]
            theirs.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
            theirs.add_special_tokens(["</s>", AddedToken("<x>", lstrip=True)])
            theirs.add_tokens([AddedToken("\u00c9", normalized=True)])
            path = os.path.join(folder, "unigram.json")
            theirs.save(path)
            texts = TEXTS + ["", " ", "  a  b  ", "\u2581a", "a</s>b <x> c", "\ufb01ne \uff21\u3000b", "e\u0301\u0302\u0303 A\u0301", "``a''", "\u00ad",
                             "\u1100\u1161\u11a8", "\U0001f469\u200d\U0001f4bb"]
            expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
            what = f"Unigram {name}, {'bytes' if fallback else 'unknown'}"
            same(what, rows(run(folder, "unigram", texts, path)), expected)
            if fallback:
                same("decoded, " + what, run(folder, "ununigram", texts, path).split("\0")[:-1],
                     [theirs.decode(ids, skip_special_tokens=False) for ids in expected])


def word_pieces(folder):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    for options in ({}, {"lowercase": False}, {"strip_accents": False}, {"lowercase": False, "strip_accents": True},
                    {"clean_text": False, "handle_chinese_chars": False}):
        theirs = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
        theirs.normalizer = normalizers.BertNormalizer(**options)
        theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        theirs.decoder = decoders.WordPiece()
        theirs.train_from_iterator(SENTENCES + TEXTS[:200], trainers.WordPieceTrainer(
            vocab_size=900, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
        path, ours = os.path.join(folder, "bert.json"), os.path.join(folder, "ours.json")
        theirs.save(path)
        texts = TEXTS + ["the [MASK] fox [CLS]x", "it 's isn 't, we 've. . . !", "x" * 40, "\u4e2d\u6587 \u00c9t\u00e9", "a\u0000b\ufffd"]
        texts = [text for text in texts if "\0" not in text]
        expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
        same(f"WordPiece {options}", rows(run(folder, "pieces", texts, path)), expected)
        same("decoded", run(folder, "unpieces", texts, path).split("\0")[:-1],
             [theirs.decode(ids, skip_special_tokens=False) for ids in expected])
        run(folder, "save_pieces", [], path, ours)
        read = Tokenizer.from_file(ours)
        same("written again", [read.encode(text, add_special_tokens=False).ids for text in texts], expected)


def keras_words(folder):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    from keras.src.legacy.preprocessing.text import Tokenizer, tokenizer_from_json

    theirs = Tokenizer(num_words=500, oov_token="<OOV>")
    theirs.fit_on_texts(TEXTS + SENTENCES)
    expected = theirs.texts_to_sequences(TEXTS + SENTENCES)
    path = os.path.join(folder, "words.json")
    same("Tokenizer", rows(run(folder, "fit", TEXTS + SENTENCES, "500", path)), expected)
    with open(path, encoding="utf-8") as file:
        read = tokenizer_from_json(file.read())
    for name in ("word_counts", "word_docs", "index_docs", "word_index", "index_word", "document_count"):
        if getattr(read, name) != getattr(theirs, name):
            sys.exit(f"our JSON in Keras: {name} differs")
    same("our JSON in Keras", read.texts_to_sequences(TEXTS), theirs.texts_to_sequences(TEXTS))
    with open(path, "w", encoding="utf-8") as file:
        file.write(theirs.to_json())
    same("Keras's JSON", rows(run(folder, "sequences", TEXTS, path)), theirs.texts_to_sequences(TEXTS))


def main():
    with tempfile.TemporaryDirectory() as folder:
        same("lower case", run(folder, "lower", TEXTS).split("\0")[:-1], [text.lower() for text in TEXTS])
        checked = 0
        for check in (byte_pairs, sentence_pieces, unigrams, word_pieces, keras_words):
            try:
                check(folder)
                checked += 1
            except ImportError as missing:
                print(f"left out: {missing}")
        return 0 if checked else 77


sys.exit(main())
