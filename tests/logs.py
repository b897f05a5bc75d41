"""Small made-up logs of evaluation tools: two models, ant and bee, answer two prompts, and ant's answers are better."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

MODELS = ("ant", "bee")
ANSWERS = {
    "Name a colour of the sky.": {"ant": "Blue.", "bee": "Green."},
    "Name a colour of grass.": {"ant": "Green.", "bee": "Blue."},
}
PROMPTS = list(ANSWERS)


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def promptfoo(folder: Path, *, select: bool = True) -> list[Path]:
    def result(number: int, model: str) -> dict[str, Any]:
        won = model == "ant"
        components = [{"pass": won, "score": int(won), "assertion": {"type": "contains", "value": "x"}}]
        if select:
            components.append({"pass": won, "score": int(won), "assertion": {"type": "select-best", "value": "best"}})
        prompt = PROMPTS[number]
        return {
            "promptIdx": MODELS.index(model),
            "testIdx": number,
            "testCase": {"vars": {"question": prompt}},
            "provider": {"id": f"openai:{model}", "label": model},
            "prompt": {"raw": prompt, "label": "{{question}}"},
            "vars": {"question": prompt},
            "response": {"output": ANSWERS[prompt][model], "tokenUsage": {"total": 9}},
            "success": won,
            "score": float(won),
            "gradingResult": {"pass": won, "score": float(won), "reason": "so", "componentResults": components},
        }

    results = [result(number, model) for number in range(len(PROMPTS)) for model in MODELS]
    summary = {"version": 3, "timestamp": "2026-01-01T00:00:00Z", "results": results, "prompts": [], "stats": {}}
    return [
        _json(folder / "output.json", {"evalId": "eval-abc", "results": summary, "config": {}, "shareableUrl": None})
    ]


def inspect_log(model: str) -> dict[str, Any]:
    samples = [
        {
            "id": number,
            "epoch": 1,
            "input": [{"role": "user", "content": "attachment://0f"}] if number else prompt,
            "target": ANSWERS[prompt]["ant"],
            "output": {
                "model": model,
                "choices": [{"message": {"role": "assistant", "content": ANSWERS[prompt][model]}}],
                "completion": ANSWERS[prompt][model],
            },
            "scores": {"includes": {"value": "C" if model == "ant" else "I", "answer": "x"}},
            "attachments": {"0f": prompt},
        }
        for number, prompt in enumerate(PROMPTS)
    ]
    header = {"task": "colours", "model": model, "dataset": {}}
    return {"version": 2, "status": "success", "eval": header, "plan": {}, "samples": samples}


def inspect_json(folder: Path) -> list[Path]:
    return [_json(folder / f"{model}.json", inspect_log(model)) for model in MODELS]


def inspect_eval(folder: Path) -> list[Path]:
    paths = []
    for model in MODELS:
        log = inspect_log(model)
        paths.append(folder / f"{model}.eval")
        with ZipFile(paths[-1], "w", ZIP_DEFLATED) as archive:
            for sample in log.pop("samples"):
                archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
            archive.writestr("summaries.json", "[]")
            archive.writestr("header.json", json.dumps(log))
    return paths


def lm_eval(folder: Path) -> list[Path]:
    def row(number: int, model: str) -> dict[str, Any]:
        answer = ANSWERS[PROMPTS[number]][model]
        prompt = PROMPTS[number] if model == "ant" else f"<user>{PROMPTS[number]}</user>"
        return {
            "doc_id": number,
            "doc": {"question": PROMPTS[number]},
            "target": "x",
            "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n\n"]}}},
            "resps": [[answer]],
            "filtered_resps": [answer],
            "filter": "strict",
            "metrics": ["exact_match", "ter"],
            "doc_hash": f"{number}abc",
            "exact_match": float(model == "ant"),
            "ter": float(model == "ant"),
        }

    return [
        _lines(
            folder / f"lab__{model}" / "samples_colours_2026-01-02T03-04-05.678901.jsonl",
            [row(0, model), row(1, model)],
        )
        for model in MODELS
    ]


def batch(folder: Path) -> list[Path]:
    def asked(number: int) -> dict[str, Any]:
        body = {"model": "any", "messages": [{"role": "user", "content": PROMPTS[number]}]}
        return {"custom_id": f"q{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}

    def answered(number: int, model: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": ANSWERS[PROMPTS[number]][model]}
        body = {"id": "c", "model": model, "choices": [{"index": 0, "message": message}]}
        return {
            "id": "batch_req_1",
            "custom_id": f"q{number}",
            "response": {"status_code": 200, "request_id": "r", "body": body},
            "error": None,
        }

    requests = _lines(folder / "requests.jsonl", [asked(0), asked(1)])
    return [
        *(_lines(folder / f"{model}.jsonl", [answered(0, model), answered(1, model)]) for model in MODELS),
        requests,
    ]


def openai_evals(folder: Path) -> list[Path]:
    def events(model: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{"spec": {"completion_fns": [model], "eval_name": "colours.v0", "run_id": "r"}}]
        for number, prompt in enumerate(PROMPTS):
            about = {"run_id": "r", "sample_id": f"colours.{number}", "created_by": "", "created_at": ""}
            said = {"prompt": [{"role": "user", "content": prompt}], "sampled": [ANSWERS[prompt][model]]}
            rows.append({**about, "event_id": 2 * number, "type": "sampling", "data": said})
            met = {"correct": model == "ant", "expected": "x", "picked": None}
            rows.append({**about, "event_id": 2 * number + 1, "type": "match", "data": met})
        return [*rows, {"final_report": {"accuracy": 0.5}}]

    return [_lines(folder / f"{model}.jsonl", events(model)) for model in MODELS]


def helm(folder: Path) -> list[Path]:
    paths = []
    for model in MODELS:
        states = [
            {
                "instance": {"input": {"text": prompt}, "references": [{"output": {"text": "x"}, "tags": ["correct"]}]},
                "train_trial_index": 0,
                "request": {"model": model, "model_deployment": f"x/{model}", "prompt": prompt},
                "result": {"success": True, "completions": [{"text": ANSWERS[prompt][model]}]},
            }
            for prompt in PROMPTS
        ]
        (folder / model).mkdir()
        paths.append(_json(folder / model / "scenario_state.json", {"adapter_spec": {}, "request_states": states}))
    return paths


def judgelm(folder: Path) -> list[Path]:
    rows = [
        {
            "question_id": number,
            "question_body": prompt,
            **{f"answer{side}_model_id": model for side, model in enumerate(MODELS, start=1)},
            **{f"answer{side}_body": ANSWERS[prompt][model] for side, model in enumerate(MODELS, start=1)},
            "pred_text": "8 6.5\nThe first is right." if number else "9, 2",
            "pred_model_id": "judge-7b",
        }
        for number, prompt in enumerate(PROMPTS)
    ]
    return [_lines(folder / "judgments.jsonl", rows)]


def pandalm(folder: Path) -> list[Path]:
    rows = [
        {
            "index": str(number),
            "cmp_key": "ant_bee",
            "instruction": prompt,
            "input": "",
            "response1": ANSWERS[prompt]["ant"],
            "response2": ANSWERS[prompt]["bee"],
            "label_0": "1",
        }
        for number, prompt in enumerate(PROMPTS)
    ]
    return [_json(folder / "testset-v1.json", rows)]


def langfuse(folder: Path) -> list[Path]:
    rows: list[dict[str, Any]] = [{"id": "s", "trace_id": "t", "type": "SPAN", "input": "x", "output": "y"}]
    for prompt, said in ANSWERS.items():
        for model, text in said.items():
            asked = [{"role": "user", "content": prompt}]
            answer = {"role": "assistant", "content": text} if model == "ant" else text
            about = {"id": "o", "trace_id": "t", "type": "GENERATION", "name": "call", "provided_model_name": model}
            rows.append({**about, "input": json.dumps(asked), "output": answer})
    return [_lines(folder / "observations.jsonl", rows)]


def langsmith(folder: Path) -> list[Path]:
    rows = [
        {
            "id": "r",
            "name": "target",
            "run_type": "chain",
            "session_name": model,
            "reference_example_id": f"e{number}",
            "inputs": {"question": prompt},
            "outputs": {"answer": text},
            "extra": {"metadata": {"ls_model_name": "gpt"}},
            "feedback_stats": {"correctness": {"n": 1, "avg": float(model == "ant")}},
        }
        for number, (prompt, said) in enumerate(ANSWERS.items())
        for model, text in said.items()
    ]
    return [_lines(folder / "runs.jsonl", rows)]


LOGS: dict[str, Callable[[Path], list[Path]]] = {
    "promptfoo": promptfoo,
    "inspect-ai": inspect_eval,
    "lm-eval": lm_eval,
    "batch": batch,
    "openai-evals": openai_evals,
    "helm": helm,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "judgelm": judgelm,
    "pandalm": pandalm,
}
"""Of each format of logs, and of files of judge models, what writes its files into a folder."""
