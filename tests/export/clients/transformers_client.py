"""transformers of any version, on its own PyTorch code: `AutoModelForCausalLM` of the checkpoint as it was saved.

`python transformers_client.py REQUEST.json`, with requests as for every client (tests/export/cases.py).
"""

import json
import sys
from pathlib import Path

for name in ("mamba_ssm", "causal_conv1d", "mambapy"):  # so that it cannot hand its work to them
    sys.modules[name] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def written(model, names, prompt: str, most: int, cached: bool) -> str:
    ids = names(prompt, return_tensors="pt", return_token_type_ids=False)
    options = {"max_new_tokens": most, "do_sample": False, "use_cache": cached}
    return names.decode(model.generate(**ids, **options)[0, ids["input_ids"].shape[1] :])


@torch.no_grad()
def main(requests: str) -> None:
    transformers.logging.set_verbosity_error()
    for request in json.loads(Path(requests).read_text()):
        ids = torch.from_numpy(np.load(request["ids"]))
        model = transformers.AutoModelForCausalLM.from_pretrained(request["path"], torch_dtype=torch.float32).eval()
        names = transformers.AutoTokenizer.from_pretrained(request["path"])
        tokens = names.encode(request["text"])
        said = [written(model, names, prompt, request["most"], True) for prompt in request["prompts"]]
        plain = [written(model, names, prompt, request["most"], False) for prompt in request["prompts"]]
        both = [one if one == other else f"{one} (without cache: {other})" for one, other in zip(said, plain)]
        whole = model(ids, use_cache=False).logits.numpy()
        np.savez(request["out"], whole=whole, written=both, tokens=tokens, text=names.decode(tokens))
    print(f"transformers {transformers.__version__}")


if __name__ == "__main__":
    main(sys.argv[1])
