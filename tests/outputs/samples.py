"""Files of outputs as the tools write them: two items on two cases, with invented texts."""

import csv
import io
import json
import zipfile

ASKED = {"q1": "Name a river.", "q2": "Name a metal."}
SAID = {
    ("north", "q1"): "The Elbe.",
    ("north", "q2"): "Tin, of course.",
    ("south", "q1"): "Po",
    ("south", "q2"): "I think zinc.",
}
ITEMS, CASES = ("north", "south"), ("q1", "q2")


def write(path, *records, indent=None):
    """JSON if there is one record and no .jsonl, else JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, indent=indent) for record in records]
    path.write_text("\n".join(lines) + "\n")
    return path


def by_item(folder, make, name="{}.jsonl"):
    """A file for each item with a record for each case."""
    return [write(folder / name.format(item), *(make(item, case) for case in CASES)) for item in ITEMS]


def table(path, rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    path.write_text(text.getvalue())
    return [path]


def promptfoo_result(item, case, **more):
    result = {
        "promptIdx": ITEMS.index(item), "testIdx": CASES.index(case), "provider": {"id": f"lab:{item}", "label": ""},
        "prompt": {"raw": f"Be brief. {ASKED[case]}", "label": "brief"}, "vars": {"task": ASKED[case]},
        "response": {"output": SAID[item, case]}, "failureReason": 0, "error": None, "success": True, "score": 1,
    }  # fmt: skip
    return {**result, **more}


def promptfoo_results():
    return [promptfoo_result(item, case) for case in reversed(CASES) for item in reversed(ITEMS)]


def promptfoo_3(folder):
    prompts = [{"raw": "Be brief. {{task}}", "label": "brief", "provider": f"lab:{item}"} for item in ITEMS]
    body = {"version": 3, "prompts": prompts, "results": promptfoo_results()}
    return [write(folder / "out.json", {"evalId": "e", "results": body, "config": {}}, indent=1)]


def promptfoo_2(folder):
    kept = [{k: v for k, v in one.items() if k not in ("promptIdx", "testIdx")} for one in promptfoo_results()[::-1]]
    return [write(folder / "out.json", {"results": {"version": 2, "results": kept, "table": {}}, "config": {}})]


def promptfoo_1(folder):
    kept = [
        {"prompt": {"raw": ASKED[case], "display": item}, "vars": {"task": ASKED[case]}, "response": {"output": said}}
        for (item, case), said in SAID.items()
    ]
    return [write(folder / "out.json", {"version": 1, "results": kept, "stats": {}, "table": {"head": {}}})]


def promptfoo_lines(folder):
    return [write(folder / "out.jsonl", *promptfoo_results())]


def promptfoo_table(folder):
    heads = [title for item in ITEMS for title in (f"[lab:{item}] brief", "Status", "Score", "Named Scores", "Comment")]
    rows = [["Description", "task", *heads]]
    for case in CASES:
        rows.append(["d", ASKED[case], *(cell for i in ITEMS for cell in (SAID[i, case], "FAIL", "0.00", "", ""))])
    return table(folder / "out.csv", rows)


def promptfoo_old_table(folder):
    rows = [["task", *(f"[lab:{item}] brief" for item in ITEMS)]]
    for case in CASES:
        cells = [f"[FAIL] (0.00)\n\n{SAID[i, case]}\n\nFail Reason: it is\n\nlong" for i in ITEMS]
        rows.append([ASKED[case], *cells])
    return table(folder / "out.csv", rows)


def inspect_sample(item, case, **more):
    message = {"role": "assistant", "content": SAID[item, case]}
    output = {"model": item, "choices": [{"message": message, "stop_reason": "stop"}]}
    sample = {
        "id": case,
        "epoch": 1,
        "input": ASKED[case],
        "target": ["t"],
        "output": output,
        "scores": {"s": {"value": 1}},
    }
    return {**sample, **more}


def inspect_header(item, **more):
    evaluation = {"model": f"lab/{item}", "task": "mine", "created": "2026-01-01"}
    return {"version": 2, "status": "success", "eval": evaluation, "plan": {}, **more}


def inspect_json(folder):
    return [
        write(
            folder / f"{item}.json", {**inspect_header(item), "samples": [inspect_sample(item, case) for case in CASES]}
        )
        for item in ITEMS
    ]


def archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in members.items():
            file.writestr(name, json.dumps(value))
    return path


def inspect_archive(folder):
    return [
        archive(
            folder / f"{item}.eval",
            {
                "header.json": inspect_header(item),
                **{f"samples/{case}_epoch_1.json": inspect_sample(item, case) for case in CASES},
                "summaries.json": [],
            },
        )
        for item in ITEMS
    ]


def helm_state(item, case, **more):
    instance = {
        "id": case,
        "input": {"text": ASKED[case]},
        "references": [{"output": {"text": "r"}, "tags": ["correct"]}],
    }
    result = {"success": True, "completions": [{"text": f" {SAID[item, case]}"}]}
    return {"instance": instance, "train_trial_index": 0, "result": result, **more}


def helm(folder):
    for item in ITEMS:
        states = [helm_state(item, case) for case in CASES]
        write(
            folder / f"mine:k=v,model=lab_{item}" / "scenario_state.json",
            {"adapter_spec": {"model": f"lab/{item}"}, "request_states": states},
        )
    return [folder]


def lm_eval_row(item, case, name="none", **more):
    number = CASES.index(case)
    row = {
        "doc_id": number, "doc": {"q": ASKED[case]}, "target": "t", "filter": name, "doc_hash": case,
        "arguments": {"gen_args_0": {"arg_0": ASKED[case], "arg_1": {"until": []}}}, "resps": [[SAID[item, case]]],
        "filtered_resps": [SAID[item, case][:3]], "metrics": ["exact_match"], "exact_match": 0.0,
    }  # fmt: skip
    return {**row, **more}


def lm_eval(folder):
    for item in ITEMS:
        rows = [lm_eval_row(item, case, name) for name in ("none", "first") for case in CASES]
        write(folder / f"lab__{item}" / "samples_mine_2026-01-01T00-00-00.000000.jsonl", *rows)
    return [folder]


def arena_hard_row(item, case):
    answer = {"role": "assistant", "content": {"answer": SAID[item, case], "thought": "Hm."}}
    return {"uid": case, "model": item, "messages": [{"role": "user", "content": ASKED[case]}, answer]}


def arena_hard(folder):
    by_item(folder / "model_answer", arena_hard_row)
    write(folder / "question.jsonl", *({"uid": case, "category": "c", "prompt": ASKED[case]} for case in CASES))
    return [folder]


def arena_hard_2024(folder):
    by_item(
        folder / "model_answer",
        lambda item, case: {
            "question_id": case,
            "model_id": item,
            "choices": [{"index": 0, "turns": [{"content": SAID[item, case]}]}],
        },
    )
    write(folder / "question.jsonl", *({"question_id": case, "turns": [{"content": ASKED[case]}]} for case in CASES))
    return [folder]


def mt_bench(folder):
    by_item(
        folder / "model_answer",
        lambda item, case: {
            "question_id": case,
            "model_id": item,
            "choices": [{"index": 0, "turns": ["Hello.", SAID[item, case]]}],
        },
    )
    turns = [{"question_id": case, "turns": ["Greet me.", ASKED[case]], "reference": ["hi", "r"]} for case in CASES]
    write(folder / "question.jsonl", *turns)
    return [folder]


def alpaca_eval(folder):
    for item in ITEMS:
        rows = [{"instruction": ASKED[case], "output": SAID[item, case], "generator": item} for case in CASES]
        write(folder / item / "model_outputs.json", rows, indent=1)
    return [folder]


def openai_row(item, case, **more):
    choices = [{"index": 0, "message": {"role": "assistant", "content": SAID[item, case]}, "finish_reason": "stop"}]
    response = {"status_code": 200, "body": {"model": item, "choices": choices}}
    return {"id": "b", "custom_id": case, "response": response, "error": None, **more}


def openai_request(case):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED[case]}]
    return {"custom_id": case, "method": "POST", "url": "/v1/chat/completions", "body": {"messages": messages}}


def openai_batch(folder):
    return [*by_item(folder, openai_row), write(folder / "requests.jsonl", *map(openai_request, CASES))]


def responses_batch(folder):
    def row(item, case):
        content = [{"type": "output_text", "text": SAID[item, case]}]
        output = [{"type": "reasoning", "summary": []}, {"type": "message", "content": content}]
        return {
            "custom_id": case,
            "response": {"status_code": 200, "body": {"model": item, "output": output}},
            "error": None,
        }

    return [*by_item(folder, row), write(folder / "requests.jsonl", *map(openai_request, CASES))]


def anthropic_row(item, case, **more):
    message = {"model": item, "content": [{"type": "text", "text": SAID[item, case]}], "stop_reason": "end_turn"}
    return {"custom_id": case, "result": {"type": "succeeded", "message": message}, **more}


def anthropic_batch(folder):
    asked = [{"custom_id": case, "params": {"messages": [{"role": "user", "content": ASKED[case]}]}} for case in CASES]
    return [*by_item(folder, anthropic_row), write(folder / "requests.jsonl", *asked)]


def openai_evals(folder):
    paths = []
    for item in ITEMS:
        rows = [
            {
                "sample_id": case,
                "type": "sampling",
                "data": {"prompt": [{"role": "user", "content": ASKED[case]}], "sampled": [SAID[item, case]]},
            }
            for case in CASES
        ]
        rows.append({"sample_id": "q1", "type": "match", "data": {"correct": True}})
        paths.append(write(folder / f"{item}.jsonl", {"spec": {"completion_fns": [item]}}, *rows, {"final_report": {}}))
    return paths


def phoenix_row(item, case, **more):
    row = {"example_id": case, "repetition_number": 1, "input": {"q": ASKED[case]}, "reference_output": {"a": "r"}}
    return {**row, "output": SAID[item, case], "error": None, "annotations": [{"name": "n", "score": 1}], **more}


def phoenix(folder):
    return [write(folder / f"{item}.json", [phoenix_row(item, case) for case in CASES], indent=1) for item in ITEMS]


def phoenix_table(folder):
    for item in ITEMS:
        rows = [[case, 1, json.dumps({"q": ASKED[case]}), SAID[item, case]] for case in CASES]
        table(folder / f"{item}.csv", [["example_id", "repetition_number", "input", "output"], *rows])
    return [folder / f"{item}.csv" for item in ITEMS]


def long_rows():
    return [{"item": i, "case": c, "text": ASKED[c], "output": said, "reference": "r"} for (i, c), said in SAID.items()]


def long_lines(folder):
    return [write(folder / "long.jsonl", *long_rows())]


def long_table(folder):
    rows = [["Model", "id", "Prompt", "Response"], *([i, c, ASKED[c], said] for (i, c), said in SAID.items())]
    return table(folder / "long.csv", rows)


def wide(folder):
    rows = [["case", "text", *ITEMS], *([c, ASKED[c], *(SAID[i, c] for i in ITEMS)] for c in CASES)]
    return table(folder / "wide.csv", rows)


def folders(folder):
    for name, texts in [*((item, {c: SAID[item, c] for c in CASES}) for item in ITEMS), ("cases", ASKED)]:
        (folder / name).mkdir(parents=True)
        for case, text in texts.items():
            (folder / name / f"{case}.md").write_text(text + "\n")
    return [folder]


def dspy(folder):
    rows = {i: [{"question": ASKED[c], "example_answer": "r", "pred_answer": SAID[i, c]} for c in CASES] for i in ITEMS}
    return [write(folder / f"{item}.json", rows[item], indent=1) for item in ITEMS]


DSPY_MAP = {"item": "@file", "text": "question", "output": "pred_answer", "reference": "example_answer"}
# name of a sample: its writer, the format as it is shown, options, names of the items, and whether cases have their ids
SAMPLES = {
    "promptfoo 3": (promptfoo_3, "promptfoo", {}, "lab:{}", False),
    "promptfoo 2": (promptfoo_2, "promptfoo", {}, "lab:{}", False),
    "promptfoo 1": (promptfoo_1, "promptfoo", {}, "{}", False),
    "promptfoo lines": (promptfoo_lines, "promptfoo lines", {}, "lab:{}", False),
    "promptfoo table": (promptfoo_table, "promptfoo table", {}, "lab:{}", False),
    "promptfoo old table": (promptfoo_old_table, "promptfoo table", {}, "lab:{}", False),
    "Inspect": (inspect_json, "Inspect", {}, "lab/{}", True),
    "Inspect archive": (inspect_archive, "Inspect", {}, "lab/{}", True),
    "HELM": (helm, "HELM", {}, "lab/{}", True),
    "lm-eval": (lm_eval, "lm-eval", {}, "lab/{}", True),
    "Arena-Hard": (arena_hard, "Arena-Hard", {}, "{}", True),
    "Arena-Hard 2024": (arena_hard_2024, "Arena-Hard 2024", {}, "{}", True),
    "MT-bench": (mt_bench, "MT-bench", {}, "{}", True),
    "AlpacaEval": (alpaca_eval, "AlpacaEval", {}, "{}", False),
    "OpenAI batch": (openai_batch, "OpenAI batch", {}, "{}", True),
    "OpenAI batch of responses": (responses_batch, "OpenAI batch", {}, "{}", True),
    "Anthropic batch": (anthropic_batch, "Anthropic batch", {}, "{}", True),
    "OpenAI evals": (openai_evals, "OpenAI evals", {}, "{}", True),
    "Phoenix": (phoenix, "Phoenix", {}, "{}", True),
    "Phoenix table": (phoenix_table, "Phoenix", {}, "{}", True),
    "long lines": (long_lines, "long", {}, "{}", True),
    "long table": (long_table, "long", {}, "{}", True),
    "wide": (wide, "wide", {"wide": True}, "{}", True),
    "folder": (folders, "folder", {}, "{}", True),
    "DSPy": (dspy, "mapped", {"map": DSPY_MAP}, "{}", False),
}
