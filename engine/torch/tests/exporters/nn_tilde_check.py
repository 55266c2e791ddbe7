"""Has the package nn-tilde check archives as it checks its own modules: registers each of their methods, which calls it with
one and with four streams, and compares channels, ratios and types with what the archive states."""

import sys

import cached_conv
import nn_tilde
import torch


class Checked(nn_tilde.Module):
    def __init__(self, model):
        super().__init__()
        for name in model.get_methods():
            setattr(self, name, getattr(model, name))
            inputs, input_ratio, outputs, output_ratio = getattr(model, f"{name}_params").tolist()
            self.register_method(
                name,
                inputs,
                input_ratio,
                outputs,
                output_ratio,
                getattr(model, f"{name}_input_labels"),
                getattr(model, f"{name}_output_labels"),
            )


assert cached_conv.MAX_BATCH_SIZE > 1, "several streams are not checked"
torch.set_grad_enabled(False)
for path in sys.argv[1:]:
    model = torch.jit.load(path)
    checked = Checked(model)
    assert checked.get_methods() == list(model.get_methods()), path
    for name in model.get_attributes():
        # What a host reads, it can set.
        values = getattr(model, f"get_{name}")()
        assert getattr(model, f"set_{name}")(*values) == 0, f"{path}: {name}"
    print(f"{path}: {', '.join(checked.get_methods())}; {len(model.get_attributes())} attributes")
