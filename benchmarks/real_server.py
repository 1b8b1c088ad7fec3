"""Runs against a real server of a language model that is not ours: llama.cpp with a model of random weights.

    python -m venv llama && llama/bin/pip install xllamacpp gguf    # has llama.cpp's server ready-made
    python benchmarks/real_server.py --server-python llama/bin/python

writes a model of 0.2 MB whose answers are A or B by chance, starts llama.cpp's server with four places for requests,
and runs the same command until it ends: interrupted once, killed once, and the server killed once. It counts the
answers in the server's own log and compares them with those that the study has stored. Only the command line of
shortlist is used.
"""

import argparse
import contextlib
import importlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SHORTLIST = Path(sys.executable).with_name("shortlist")
ITEMS, CASES, WORKERS = 4, 12, 4
LETTERS = r'grammar="root ::= \"[[A]]\" | \"[[B]]\" | \"[[C]]\""'
KINDS = {"logprob": ["--verdict", "logprob"], "letters": ["--max-tokens", "10", "--option", LETTERS]}
SIZE, VOCABULARY = 32, [chr(code) for code in range(33, 127)]


def write_model(path: Path) -> None:
    """A transformer of one layer with random weights. One direction of its state is constant, and only the letters A
    and B look at it, so they have most of the probability; how much each has depends on the prompt. Needs gguf."""
    gguf = importlib.import_module("gguf")
    import numpy as np

    rng = np.random.default_rng(1)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *VOCABULARY]
    kinds = [2, 3, 3, *[6] * 256, *[1] * (1 + len(VOCABULARY))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(4096)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(2 * SIZE)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(SIZE // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def random(*shape: int) -> Any:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    def constant(weights: Any, is_last: bool) -> Any:
        """Weights that leave the first direction of the state as it is."""
        weights[0] *= not is_last
        return weights

    embedding, output = random(len(tokens), SIZE), random(len(tokens), SIZE) * 0.2
    embedding[:, 0], output[:, 0] = 6.0, 0.0
    for letter in "AB":
        output[tokens.index(letter)] = random(SIZE)
        output[tokens.index(letter), 0] = 6.0
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"):
        writer.add_tensor(name, np.ones(SIZE, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", constant(random(SIZE, SIZE), name == "attn_output"))
    for name, shape in (("ffn_gate", (2 * SIZE, SIZE)), ("ffn_up", (2 * SIZE, SIZE)), ("ffn_down", (SIZE, 2 * SIZE))):
        writer.add_tensor(f"blk.0.{name}.weight", constant(random(*shape), name == "ffn_down"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_outputs(path: Path) -> None:
    rows = [
        {"model": f"model {item}", "id": f"c{case}", "prompt": f"Explain {case}.", "response": f"{said} {case}"}
        for item, said in enumerate(("What is", "Nobody knows", "This is about", "See under"))
        for case in range(CASES)
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def serve(model: Path, port: int) -> None:
    """Run llama.cpp's server until the process is killed. Needs xllamacpp. At this level its log has a line for each
    answer that is complete."""
    llama = importlib.import_module("xllamacpp")
    wanted = llama.CommonParams()
    wanted.model.path, wanted.model_alias = str(model), {"tiny"}
    wanted.hostnames, wanted.port, wanted.verbosity = ["127.0.0.1"], port, 4
    wanted.n_ctx, wanted.n_parallel, wanted.cpuparams.n_threads = 4096 * WORKERS, WORKERS, 1
    kept = llama.Server(wanted)
    while kept:
        time.sleep(60)


class Server:
    """llama.cpp's server. `answered` counts the answers in its log."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python, self._model, self._log = python, folder / "tiny.gguf", folder / "server.log"
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as found:
            self._port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self.start()

    def start(self) -> None:
        command = [self._python, __file__, "--serve", str(self._model), str(self._port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/models"):
                return
            if self._process.poll() is not None:
                raise SystemExit(f"the server ended: {self._log.read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def answered(self) -> int:
        return self._log.read_text(errors="replace").count("| stop processing:")


def wait_for(server: Server, answers: int, run: "subprocess.Popen[str]") -> bool:
    """Wait until the server has given so many answers; False if the run ended before."""
    while server.answered < answers:
        if run.poll() is not None:
            return False
        time.sleep(0.02)
    return True


def stored(storage: list[str], file: Path) -> list[tuple[str, str, str]]:
    """What the stored answers are about: both items and the case."""
    subprocess.run([SHORTLIST, "read", *storage, "--export", file], check=True, capture_output=True)
    replies = [json.loads(line) for line in file.read_text().splitlines()]
    return [(one["first"], one["second"], one["case"]) for one in replies if one["text"]]


def runs(command: Sequence[str], server: Server, before: int) -> Iterator[str]:
    """The same command again and again, with a fault each time, until it ends by itself."""
    faults = {"interrupted": (20, signal.SIGINT), "killed": (40, signal.SIGKILL), "server killed": (60, None)}
    for name, (answers, mark) in faults.items():
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if wait_for(server, before + answers, run):
            if mark is None:
                server.kill()
                time.sleep(2)
                server.start()
            else:
                run.send_signal(mark)
        said = run.communicate()[1]
        yield f"{name}: exit code {run.returncode}" if run.returncode in (0, 130, -9) else f"{name}: {said}"
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = json.loads(run.communicate()[0])
    yield f"again: exit code {run.returncode}, {found['reason']}, {found['votes']} votes"


def play(kind: str, server: Server, folder: Path) -> None:
    before, storage = server.answered, [kind, "--storage", f"sqlite:///{folder}/{kind}.db"]
    command = [
        str(SHORTLIST), "run", str(folder / "outputs.jsonl"), "-k", "1", "--judge-url", server.url, "--model", "tiny",
        "--key-variable", "none", "--price", "1,1", "--workers", str(WORKERS), "--name", *storage, "--json",
        *KINDS[kind],
    ]  # fmt: skip
    print(f"{kind}:")
    for line in runs(command, server, before):
        answers = stored(storage, folder / "replies.jsonl")
        print(
            f"  {line}. Answers of the server: {server.answered - before}, stored: {len(answers)}, "
            f"twice: {len(answers) - len(set(answers))}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-python", default=sys.executable)
    parser.add_argument("--write-model", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write_model:
        return write_model(given.write_model)
    if given.serve:
        return serve(Path(given.serve[0]), int(given.serve[1]))
    folder = Path(tempfile.mkdtemp())
    subprocess.run([given.server_python, __file__, "--write-model", folder / "tiny.gguf"], check=True)
    write_outputs(folder / "outputs.jsonl")
    server = Server(given.server_python, folder)
    try:
        for kind in KINDS:
            play(kind, server, folder)
    finally:
        server.kill()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
