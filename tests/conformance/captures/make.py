#!/usr/bin/env python3
"""Makes the files of this folder, `input.json`, a short signal, and `answers.json`, what each file makes of it.

Networks of `.nam` files are made, written and run by NAM's own trainer (neural-amp-modeler 0.13.0, PyTorch 2.11.0), the
others are run by PyTorch in the layouts of Keras. All weights are random, and run in 64 bits after the silence that
players begin with. Run it in this folder with both packages installed.
"""

import copy
import gzip
import json
import math

import torch
import torch.nn.functional as F
from nam.models import init_from_nam
from nam.models.conv_net import ConvNet
from nam.models.linear import Linear
from nam.models.recurrent import LSTM
from nam.models.wavenet import PackedWaveNet, WaveNet

# Longer than what any WaveNet here hears; recurrent networks forget the start within it.
SILENCE = 24_000
LENGTH = 48
# Relative error of the trainer, which computes in 32 bits.
SAME = 1e-4

ANSWERS = []
GROUP = None
SIGNAL = [
    round(0.5 * math.sin(0.06 * n * (1 + n / 40)) + (0.4 if n % 13 == 5 else 0) - (0.7 if n == 30 else 0), 4)
    for n in range(LENGTH)
]


def group(name):
    global GROUP
    GROUP = name


def heard(run):
    """Returns what a network makes of the signal after silence; `run` is given `[1, frame]`."""
    signal = torch.tensor([0.0] * SILENCE + SIGNAL, dtype=torch.float64)[None]
    with torch.no_grad():
        return run(signal)[0, -LENGTH:].tolist()


def trainer_reads(name, expected):
    """Returns what NAM's trainer makes of a file: `exact`, `other sound` or `refuses`."""
    try:
        with open(name) as file:
            net = init_from_nam(json.load(file)).double().eval()
        found = heard(net._forward)
    except Exception:
        return "refuses"
    if expected is None:
        return "plays"
    level = sum(x * x for x in expected)
    error = sum((x - y) ** 2 for x, y in zip(found, expected))
    return "exact" if error <= SAME**2 * level else "other sound"


def answer(name, what, content, output=None, refused=None, rate=48_000, methods=None, note=None, why=None):
    """Writes a file and notes its answer: its output, or a part of the message that refuses it; its sample rate; the
    output of its smaller networks; a part of a remark to the user."""
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    with open(name, "wb") as file:
        file.write(content)
    entry = {"file": name, "group": GROUP, "what": what}
    if why:
        entry["why"] = why
    if name.endswith(".nam"):
        entry["trainer"] = trainer_reads(name, output)
    if refused:
        entry["refused"] = refused
    else:
        entry["rate"] = rate
        entry["output"] = [float(f"{x:.7g}") for x in output]
    if methods:
        entry["methods"] = {key: [float(f"{x:.7g}") for x in output] for key, output in methods.items()}
    if note:
        entry["note"] = note
    ANSWERS.append(entry)


# NAM ------------------------------------------------------------------------------------------------------------------


def rounded(values):
    return [round(x, 4) for x in values]


def randomize(net, seed, scale=0.5):
    """Gives a network random weights of four decimals."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for values in net.parameters():
            values.copy_((scale * torch.randn(values.shape)).mul(1e4).round().div(1e4))
    return net.eval()


def exported(net):
    """Returns the content of a network's file as the trainer writes it, without its date."""
    net.sample_rate = 48_000
    content = json.loads(json.dumps(net._get_export_dict(), default=list))
    content["metadata"] = {"name": "Odd"}
    content["weights"] = rounded(content["weights"])
    condition = content["config"].get("condition_dsp")
    if condition:
        condition["weights"] = rounded(condition["weights"])
        del condition["metadata"]
    return content


def run(net):
    return heard(copy.deepcopy(net).double()._forward)


def array(inputs=1, channels=3, outputs=1, dilations=(1, 2), activation="Tanh", kernel_size=3, bias=True, head_kernel=1, **more):
    return {
        "input_size": inputs, "condition_size": 1, "channels": channels, "kernel_size": kernel_size,
        "dilations": list(dilations), "activation": activation,
        "head": {"out_channels": outputs, "kernel_size": head_kernel, "bias": bias}, **more,
    }


def wavenet(*arrays, seed=1, **more):
    config = {"layers_configs": list(arrays), "head": None, "head_scale": 0.25, "sample_rate": 48_000, **more}
    return randomize(WaveNet.init_from_config(copy.deepcopy(config)), seed)


def pair(kind, primary="Tanh", secondary="Sigmoid"):
    return {"name": f"Pair{kind}", "primary": primary, "secondary": secondary}


def of_trainer(name, what, net, **more):
    answer(name, what, exported(net), run(net), **more)


def changed(content, **fields):
    """Returns a copy with other fields; those of the first layer array begin with `layer_`."""
    content = copy.deepcopy(content)
    for field, value in fields.items():
        place = content
        if field.startswith("layer_"):
            place, field = content["config"]["layers"][0], field.removeprefix("layer_")
        if value is ...:
            place.pop(field, None)
        else:
            place[field] = value
    return content


group("WaveNet")
of_trainer("wavenet.nam", "two layer arrays", wavenet(array(outputs=2, bias=False), array(3, 2)))
of_trainer("gated.nam", "gated", wavenet(array(activation=pair("Multiply")), seed=2))
of_trainer("blended.nam", "blended", wavenet(array(activation=pair("Blend", "ReLU")), seed=3))
of_trainer("each_gating.nam", "another gating in each layer",
           wavenet(array(dilations=[1, 2, 4], activation=["Tanh", pair("Multiply", "SiLU", "Tanh"), pair("Blend")]), seed=4))
FILMS = ["conv_pre", "conv_post", "input_mixin_pre", "input_mixin_post", "activation_pre", "activation_post", "layer1x1_post",
         "head1x1_post"]
films = {f"{place}_film": {"active": True, "shift": index % 2 == 0, "groups": 1} for index, place in enumerate(FILMS)}
of_trainer("films.nam", "all eight modulations (FiLM), with and without shift",
           wavenet(array(film_params=films, head_1x1_config={"active": True, "out_channels": 2, "groups": 1}), seed=5),
           why="players leave out one of them, see [Captures](captures.md#formats)")
of_trainer("films_gated.nam", "the same, gated",
           wavenet(array(film_params=films, activation=pair("Multiply"),
                         head_1x1_config={"active": True, "out_channels": 2, "groups": 1}), seed=6))
of_trainer("groups.nam", "groups, and a bottleneck",
           wavenet(array(channels=4, bottleneck=2, groups_input=2, layer_1x1_config={"active": True, "groups": 2},
                         head_1x1_config={"active": True, "out_channels": 2, "groups": 2}), seed=7))
of_trainer("no_layer1x1.nam", "no 1×1 convolution between layers", wavenet(array(layer_1x1_config={"active": False}), seed=8),
           why="players pass on other values, see [Captures](captures.md#formats)")
of_trainer("kernels.nam", "another kernel in each layer, a head of four taps",
           wavenet(array(dilations=[1, 3, 7], kernel_size=[6, 2, 1], head_kernel=4,
                         activation={"name": "LeakyReLU", "negative_slope": 0.01}), seed=9))
of_trainer("post_head.nam", "head of two stages after the gain",
           wavenet(array(outputs=2), seed=10, head={"channels": 2, "activation": "ReLU", "out_channels": 1, "kernel_sizes": [3, 2]}))
of_trainer("condition.nam", "another WaveNet as condition",
           wavenet(array(condition_size=2), seed=11, condition_dsp={
               "name": "WaveNet", "config": {"layers_configs": [array(outputs=2)], "head": None, "head_scale": 0.5}}),
           why="the trainer writes such files, but does not read them")
ACTIVATIONS = ["ReLU", "Sigmoid", "SiLU", "Hardswish", "Softsign", "Softsigmoid", {"name": "Hardtanh", "min_val": -0.5, "max_val": 0.7},
               {"name": "LeakyHardtanh", "min_val": -0.4, "max_val": 0.3, "min_slope": 0.1, "max_slope": 0.2}]
of_trainer("activations.nam", "another activation in each layer",
           wavenet(array(dilations=[1] * len(ACTIVATIONS), kernel_size=2, activation=ACTIVATIONS), seed=12))
prelu = wavenet(array(activation={"name": "PReLU", "num_parameters": 3}), seed=13)
of_trainer("prelu.nam", "PReLU with a slope for each channel", prelu, why="the trainer does not read the slopes again")
slimmable = wavenet(array(channels=4, slimmable={"method": "slice_channels_uniform", "kwargs": {"allowed_channels": [2, 4]}}), seed=14)
content, whole = exported(slimmable), run(slimmable)
slimmable._net.set_slimming(0.0)
smaller = run(slimmable)
answer("slimmable.nam", "slimmable to two of four channels", content, whole, methods={"forward.2": smaller})
elu = wavenet(array(activation="ELU"), seed=15)
answer("elu.nam", "activation that NAM's player does not have", exported(elu), refused='unknown activation "ELU"')

group("Containers")


def packed(names, channels):
    layers = [array(channels=count, bias=True, dilations=[1, 2], activation="LeakyReLU") for count in channels]
    nets = [wavenet(layer, seed=20 + index) for index, layer in enumerate(layers)]
    models = [exported(net) for net in nets]
    values = [(index + 1) / len(nets) for index in range(len(nets))]
    submodels = [{"max_value": value, "model": model} for value, model in zip(values, models)]
    content = {"version": "0.7.0", "metadata": {"name": "Odd"}, "architecture": "SlimmableContainer",
               "config": {"submodels": submodels}, "weights": [], "sample_rate": 48_000}
    return content, [run(net) for net in nets]


container, outputs = packed(["lite", "full"], [2, 3])
NOT_READ = "the trainer writes containers, but does not read them"
answer("container.nam", "two sizes (A2)", container, outputs[1], methods={"forward.lite": outputs[0]}, why=NOT_READ)
three, outputs3 = packed(["nano", "lite", "full"], [2, 3, 4])
answer("container_3.nam", "three sizes", three, outputs3[2], methods={"forward.size1": outputs3[0], "forward.size2": outputs3[1]})
one = copy.deepcopy(container)
del one["config"]["submodels"][0]
answer("container_1.nam", "one size", one, outputs[1])
other_rate = copy.deepcopy(container)
other_rate["config"]["submodels"][0]["model"]["sample_rate"] = 44_100
answer("container_rates.nam", "sizes of two sample rates", other_rate, refused="expected 48000 Hz")
no_rate = copy.deepcopy(container)
del no_rate["sample_rate"]
for submodel in no_rate["config"]["submodels"]:
    submodel["model"]["sample_rate"] = 44_100
answer("container_rate_inside.nam", "sample rate only in the sizes", no_rate, outputs[1], rate=44_100,
       methods={"forward.lite": outputs[0]})
nested = copy.deepcopy(one)
nested["config"]["submodels"][0]["model"] = container
answer("container_nested.nam", "container in a container", nested, refused="a container cannot be part of another model")
empty = copy.deepcopy(container)
empty["config"]["submodels"] = []
answer("container_empty.nam", "no sizes", empty, refused="submodels: is empty")

group("LSTM, ConvNet, Linear")


def lstm(seed, **config):
    return randomize(LSTM(sample_rate=48_000, **config), seed, 0.4)


for name, what, net in [
    ("lstm.nam", "LSTM", lstm(30, hidden_size=3)),
    ("lstm_2.nam", "LSTM of two layers", lstm(31, hidden_size=2, num_layers=2)),
]:
    answer(name, what, exported(net), run(net))
content = exported(lstm(30, hidden_size=3))
content["config"]["input_size"] = 2
answer("lstm_inputs.nam", "LSTM that states two inputs", content, refused="weights: ")


def conv_net(seed, batchnorm, activation):
    net = ConvNet(channels=3, dilations=[1, 2], batchnorm=batchnorm, activation=activation, sample_rate=48_000)
    randomize(net, seed)
    for block in range(2 if batchnorm else 0):
        norm = net._net._modules[f"block_{block}"]._modules["batchnorm"]
        norm.running_mean.copy_(torch.tensor(rounded((0.3 * torch.randn(3)).tolist())))
        norm.running_var.copy_(torch.tensor(rounded((0.5 + torch.rand(3)).tolist())))
    return net


of_trainer("convnet.nam", "ConvNet", conv_net(32, False, "ReLU"), why="the trainer writes them, but does not read them")
net = conv_net(33, True, "Tanh")
content = exported(net)
# The epsilon of the norm is less than four decimals.
content["weights"] = [float(f"{x:.7g}") for x in net._export_weights().tolist()]
answer("convnet_norm.nam", "ConvNet with batch norm", content, run(net))
for name, what, bias, seed in [("linear.nam", "impulse response", False, 34), ("linear_bias.nam", "impulse response and bias", True, 35)]:
    net = randomize(Linear(8, bias=bias, sample_rate=48_000), seed)
    content = exported(net)
    # As in the player: the first weight is the newest sample's.
    with torch.no_grad():
        net._net.weight.copy_(net._net.weight.flip(2))
    answer(name, what, content, run(net), why="NAM's player and its trainer read the response in opposite orders; files are made for the player")

group("Versions and rates")
PLAIN_NET = wavenet(array(), seed=40)
PLAIN, SOUND = exported(PLAIN_NET), run(PLAIN_NET)


def old_form(content):
    """Returns a file in the form of versions 0.5."""
    for layer in content["config"]["layers"]:
        layer.update(kernel_size=layer["kernel_sizes"][0], activation=layer["activation"][0]["type"], gated=False,
                     head_size=layer["head"]["out_channels"], head_bias=layer["head"]["bias"])
        for field in list(layer):
            if field not in ["input_size", "condition_size", "head_size", "channels", "kernel_size", "dilations", "activation",
                             "gated", "head_bias"]:
                del layer[field]
    del content["sample_rate"], content["metadata"]
    content["version"] = "0.5.0"
    return content


OLD = old_form(copy.deepcopy(PLAIN))
OLD_READ = "the trainer does not read its own older files"
answer("old.nam", "0.5.0: `head_size`, `head_bias`, `gated`; no rate, no metadata", OLD, SOUND, why=OLD_READ)
gated = wavenet(array(activation=pair("Multiply")), seed=2)
old_gated = old_form(changed(exported(gated), layer_activation=[{"type": "Tanh"}]))
old_gated["config"]["layers"][0]["gated"] = True
answer("old_gated.nam", "0.5.0, gated", old_gated, run(gated))
answer("old_flags.nam", "flags as 0 and 1", changed(OLD, layer_gated=0, layer_head_bias=1), SOUND)
answer("version_0.5.4.nam", "version 0.5.4", changed(PLAIN, version="0.5.4"), SOUND)
answer("version_0.6.0.nam", "version 0.6.0", changed(PLAIN, version="0.6.0"), SOUND)
answer("version_0.7.3.nam", "a newer patch", changed(PLAIN, version="0.7.3"), SOUND, note="newer than 0.7.0")
answer("version_0.8.0.nam", "a newer version", changed(PLAIN, version="0.8.0"), refused="0.8.0 is not supported",
       why="newer versions may sound otherwise; NAM's player refuses them, too")
answer("version_1.nam", "version 1.0.0", changed(PLAIN, version="1.0.0"), refused="1.0.0 is not supported")
answer("no_version.nam", "no version", changed(PLAIN, version=...), refused='"version" is missing')
answer("architecture.nam", "unknown architecture", changed(PLAIN, architecture="Transformer"), refused='unknown architecture "Transformer"')
for name, what, value, rate, note in [
    ("rate_44100.nam", "44,100 Hz", 44_100, 44_100, None),
    ("rate_float.nam", "rate as 44100.0", 44_100.0, 44_100, None),
    ("rate_text.nam", "rate as text", "44100", 44_100, None),
    ("rate_null.nam", "rate null", None, 48_000, None),
    ("rate_missing.nam", "no rate", ..., 48_000, None),
    ("rate_0.nam", "rate 0", 0, 48_000, "the sample rate 0 means none"),
]:
    answer(name, what, changed(PLAIN, sample_rate=value), SOUND, rate=rate, note=note)
answer("rate_fraction.nam", "rate of 44,100.5 Hz", changed(PLAIN, sample_rate=44_100.5), refused="expected a sample rate in Hz")

group("Fields")
answer("metadata_null.nam", "metadata null", changed(PLAIN, metadata=None), SOUND)
answer("metadata_odd.nam", "metadata of other types",
       changed(PLAIN, metadata={"name": 5150, "loudness": "-19.5", "gear_type": [], "date": "yesterday", "training": 7}), SOUND)
answer("unknown_root.nam", "unknown fields beside the known ones", changed(PLAIN, snapshot=True, trainer={"name": "x"}), SOUND)
answer("unknown_layer.nam", "unknown field of a layer array", changed(PLAIN, layer_packing={"a": 1}), refused='unknown field "packing"',
       why="it could alter the sound")
answer("unknown_layer_off.nam", "unknown fields of a layer array that are off", changed(PLAIN, layer_packing=None, layer_fast=False), SOUND)
answer("numbers_float.nam", "sizes written as 3.0",
       changed(PLAIN, layer_channels=3.0, layer_input_size=1.0, layer_kernel_sizes=[3.0, 3.0], layer_dilations=[1.0, 2.0],
               layer_bottleneck=3.0), SOUND)
answer("size_fraction.nam", "size of 2.5 channels", changed(PLAIN, layer_channels=2.5), refused="channels: expected a positive integer")
scale = copy.deepcopy(PLAIN)
scale["config"]["head_scale"] = 7.0
answer("head_scale.nam", "another gain in `head_scale` than in the weights: the latter counts", scale, SOUND)
del scale["config"]["head_scale"]
answer("head_scale_missing.nam", "no `head_scale`", scale, SOUND)
answer("few_weights.nam", "a weight too few", changed(PLAIN, weights=PLAIN["weights"][:-1]), refused="weights: only")
answer("many_weights.nam", "a weight too many", changed(PLAIN, weights=[*PLAIN["weights"], 0.5]), refused="but the architecture needs",
       why="the trainer takes no notice")
answer("no_weights.nam", "no weights", changed(PLAIN, weights=...), refused='"weights" is missing')
answer("nested_weights.nam", "weights as a list in a list", changed(PLAIN, weights=[PLAIN["weights"]]), refused="expected a list of numbers only")
answer("text_weights.nam", "weights as text", changed(PLAIN, weights=[str(x) for x in PLAIN["weights"]]), refused="expected a list of numbers only")
answer("large_weight.nam", "weight beyond 32 bits", changed(PLAIN, weights=[1e39, *PLAIN["weights"][1:]]), refused="NaN or an infinity")
answer("integer_weights.nam", "whole weights without a point", changed(PLAIN, weights=[round(3 * x) for x in PLAIN["weights"]]),
       run(init_from_nam(changed(PLAIN, weights=[round(3 * x) for x in PLAIN["weights"]]))))

group("JSON")
TEXT = json.dumps(PLAIN)
answer("indented.nam", "indented, lines ended as in Windows", json.dumps(PLAIN, indent=1).replace("\n", "\r\n") + "\r\n", SOUND)
answer("mark.nam", "byte order mark before UTF-8", b"\xef\xbb\xbf" + TEXT.encode(), SOUND)
answer("utf16.nam", "UTF-16", TEXT.encode("utf-16"), refused="UTF-16 text; save it as UTF-8")
answer("latin1.nam", "Latin-1 in a name", json.dumps(changed(PLAIN, metadata={"name": "Rêve"}), ensure_ascii=False).encode("latin-1"), SOUND)
answer("nan_metadata.nam", "NaN and infinity in the metadata, as Python writes them",
       changed(PLAIN, metadata={"name": "NaN", "loudness": -math.inf, "training": {"validation_esr": math.nan}}), SOUND)
answer("nan_weight.nam", "NaN as a weight, as Python writes it", changed(PLAIN, weights=[math.nan, *PLAIN["weights"][1:]]),
       refused="holds a NaN or an infinity")
answer("zeros_after.nam", "zeros after the end", TEXT.encode() + bytes(20), refused="trailing characters")
answer("text_after.nam", "more text after the end", TEXT + "{}", refused="trailing characters")
answer("cut.nam", "cut short", TEXT[:-60], refused="cut off: its JSON ends at line 1")
answer("deep.nam", "very deep lists", TEXT[:-1] + ', "x": ' + "[" * 300 + "]" * 300 + "}", refused="JSON: ")
answer("gzip.nam", "compressed with gzip", gzip.compress(TEXT.encode(), mtime=0), refused="an archive; unpack it")
answer("page.nam", "web page instead of the file", "<!DOCTYPE html><html><body>Not found</body></html>", refused="web page")
answer("empty.nam", "empty file", b"", refused="the file is empty")

# Keras ----------------------------------------------------------------------------------------------------------------


def tensor(*shape, scale=0.5):
    return (scale * torch.randn(*shape)).mul(1e4).round().div(1e4).double()


def listed(*tensors):
    return [json.loads(json.dumps(rounded_nested(values.tolist()))) for values in tensors]


def rounded_nested(values):
    return [rounded_nested(value) for value in values] if isinstance(values, list) else round(values, 4)


def as_32_bits(values):
    return values.float().double()


def activated(x, name):
    """Applies an activation to `[channel, frame]`."""
    functions = {"": lambda x: x, "linear": lambda x: x, "tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "elu": F.elu,
                 "softmax": lambda x: torch.softmax(x, 0)}
    return functions[name](x)


class Dense:
    def __init__(self, inputs, outputs, activation="", kind="dense"):
        self.weight, self.bias, self.activation, self.kind, self.outputs = tensor(inputs, outputs), tensor(outputs), activation, kind, outputs

    def json(self):
        return {"type": self.kind, "activation": self.activation, "weights": listed(self.weight, self.bias)}

    def run(self, x):
        return activated(as_32_bits(self.weight).T @ x + as_32_bits(self.bias)[:, None], self.activation)


class Recurrent:
    def __init__(self, kind, inputs, hidden):
        gates = {"lstm": 4, "gru": 3}[kind]
        self.kind, self.outputs, self.inputs = kind, hidden, inputs
        self.weights = [tensor(inputs, gates * hidden), tensor(hidden, gates * hidden),
                        tensor(gates * hidden) if kind == "lstm" else tensor(2, gates * hidden)]

    def json(self):
        return {"type": self.kind, "activation": "", "weights": listed(*self.weights)}

    def run(self, x):
        net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[self.kind](self.inputs, self.outputs).double()
        kernel, state, bias = map(as_32_bits, self.weights)
        # Keras orders the gates of a GRU z, r, n, PyTorch r, z, n.
        order = [0, 1, 2, 3] if self.kind == "lstm" else [1, 0, 2]

        def ordered(values):
            parts = values.split(self.outputs, -1)
            return torch.cat([parts[index] for index in order], -1)

        biases = [bias, torch.zeros_like(bias)] if self.kind == "lstm" else list(bias)
        values = [ordered(kernel).T, ordered(state).T, *map(ordered, biases)]
        for parameter, value in zip(["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"], values):
            getattr(net, parameter).data = value.contiguous()
        return net(x.T)[0].T


class Conv:
    def __init__(self, inputs, outputs, kernel, dilation, activation="", groups=1):
        self.weight, self.bias = tensor(kernel, inputs // groups, outputs), tensor(outputs)
        self.kernel, self.dilation, self.activation, self.groups, self.outputs = kernel, dilation, activation, groups, outputs

    def json(self):
        return {"type": "conv1d", "activation": self.activation, "kernel_size": [self.kernel], "dilation": [self.dilation],
                "groups": self.groups, "weights": listed(self.weight, self.bias)}

    def run(self, x):
        x = F.pad(x[None], ((self.kernel - 1) * self.dilation, 0))
        weight = as_32_bits(self.weight).permute(2, 1, 0)
        return activated(F.conv1d(x, weight, as_32_bits(self.bias), dilation=self.dilation, groups=self.groups)[0], self.activation)


class Norm:
    def __init__(self, channels, affine=True):
        self.values = [tensor(channels), tensor(channels)] if affine else []
        self.values += [tensor(channels), tensor(channels).abs() + 0.5]
        self.outputs = channels

    def json(self):
        return {"type": "batchnorm", "activation": "", "epsilon": 0.001, "weights": listed(*self.values)}

    def run(self, x):
        *affine, mean, variance = map(as_32_bits, self.values)
        gain, offset = affine or [None, None]
        return F.batch_norm(x[None], mean, variance, gain, offset, eps=0.001)[0]


class Prelu:
    def __init__(self, channels, slopes):
        self.slopes, self.outputs = tensor(slopes), channels

    def json(self):
        return {"type": "prelu", "activation": "prelu", "weights": [listed(self.slopes)]}

    def run(self, x):
        return F.prelu(x[None], as_32_bits(self.slopes))[0]


class Activation:
    def __init__(self, channels, name):
        self.name, self.outputs = name, channels

    def json(self):
        return {"type": "activation", "activation": self.name, "weights": []}

    def run(self, x):
        return activated(x, self.name)


def keras(*layers, inputs=1, **more):
    content = {"in_shape": [None, None, inputs], "layers": [{**layer.json(), "shape": [None, None, layer.outputs]} for layer in layers]}
    return {**content, **more}


def keras_output(*layers, inputs=1, skip=False, in_gain_db=0, out_gain_db=0):
    def run(signal):
        dry = signal * 10 ** (in_gain_db / 20)
        # Controls stand in the middle.
        x = torch.cat([dry] + [torch.full_like(dry, 0.5)] * (inputs - 1))
        for layer in layers:
            x = layer.run(x)
        x = x[:1]
        return (x + dry if skip else x) * 10 ** (out_gain_db / 20)

    return heard(run)


def of_keras(name, what, *layers, inputs=1, file={}, why=None, refused=None, rate=48_000, **run):
    output = None if refused else keras_output(*layers, inputs=inputs, **run)
    answer(name, what, keras(*layers, inputs=inputs, **file), output, why=why, refused=refused, rate=rate)


torch.manual_seed(50)
group("AIDA-X and RTNeural")
LSTM_LAYERS = [Recurrent("lstm", 1, 3), Dense(3, 1)]
of_keras("aida_lstm.json", "LSTM as AIDA-X writes it: skip, gain, rate as text", *LSTM_LAYERS, skip=True, in_gain_db=3, out_gain_db=-6,
         file={"in_skip": 1, "in_gain": 3, "out_gain": -6, "metadata": {"name": "Odd", "samplerate": "44100"}}, rate=44_100)
of_keras("aida_gains_text.json", "gains as text, skip as true", *LSTM_LAYERS, skip=True, in_gain_db=3, out_gain_db=-6,
         file={"in_skip": True, "in_gain": "3", "out_gain": "-6.0"})
of_keras("aida_gru.json", "GRU", Recurrent("gru", 1, 3), Dense(3, 1))
of_keras("aida_lstm_gru.json", "LSTM, then GRU", Recurrent("lstm", 1, 2), Recurrent("gru", 2, 2), Dense(2, 1))
of_keras("aida_controls.json", "two controls, which stand in the middle", Recurrent("lstm", 3, 2), Dense(2, 1), inputs=3)
of_keras("aida_inputs.json", "four inputs", Recurrent("lstm", 4, 2), Dense(2, 1), inputs=4, refused="number of inputs")
of_keras("dense.json", "dense layers with all activations", Dense(1, 3, "tanh"), Dense(3, 3, "relu"), Dense(3, 3, "elu"),
         Dense(3, 3, "softmax"), Dense(3, 3, "sigmoid"), Dense(3, 1, "linear"))
of_keras("time_distributed.json", "`time-distributed-dense`", Recurrent("lstm", 1, 2), Dense(2, 1, "tanh", "time-distributed-dense"))
of_keras("conv1d.json", "dilated convolutions", Conv(1, 3, 3, 1, "relu"), Conv(3, 2, 2, 4, "tanh"), Dense(2, 1))
of_keras("conv1d_groups.json", "convolution in groups", Conv(1, 4, 2, 1, "tanh"), Conv(4, 4, 3, 2, "tanh", groups=2), Dense(4, 1))
of_keras("batch_norm.json", "batch norm with and without gain", Conv(1, 3, 2, 1), Norm(3), Activation(3, "tanh"), Conv(3, 3, 2, 2),
         Norm(3, affine=False), Dense(3, 1))
of_keras("prelu.json", "PReLU with a slope for each channel, and with one", Dense(1, 3), Prelu(3, 3), Dense(3, 3), Prelu(3, 1), Dense(3, 1))
content = keras(*LSTM_LAYERS)
del content["in_shape"]
answer("no_in_shape.json", "no `in_shape`", content, refused='"in_shape" is missing')
content = keras(*LSTM_LAYERS)
for layer in content["layers"]:
    del layer["shape"], layer["activation"]
answer("no_shapes.json", "no shapes, no activations", content, keras_output(*LSTM_LAYERS))
content = keras(*LSTM_LAYERS)
content["layers"][1]["activation"] = None
answer("activation_null.json", "activation null", content, keras_output(*LSTM_LAYERS))
content = keras(*LSTM_LAYERS)
content["in_shape"] = [None, None, 1.0]
content["layers"][0]["shape"] = [None, None, 3.0]
answer("shape_float.json", "shapes written as 3.0", content, keras_output(*LSTM_LAYERS))
content = keras(*LSTM_LAYERS)
content["layers"][0]["shape"] = [None, None, 8]
answer("shape_wrong.json", "shape that contradicts the weights", content, refused="is 8, but the weights have 3 outputs")
content = keras(*LSTM_LAYERS)
content["layers"][0]["weights"] = [sum(part, []) if isinstance(part[0], list) else part for part in content["layers"][0]["weights"]]
answer("flat_weights.json", "matrices as flat lists", content, refused="weights[")
content = keras(Recurrent("gru", 1, 2), Dense(2, 1))
content["layers"][0]["weights"][2] = content["layers"][0]["weights"][2][0]
answer("gru_one_bias.json", "GRU with one row of biases", content, refused="weights[2]")
content = keras(*LSTM_LAYERS)
content["layers"][0]["type"] = "conv2d"
answer("conv2d.json", "two-dimensional convolution", content, refused='unknown layer type "conv2d"')
content = keras(*LSTM_LAYERS)
content["layers"][1]["activation"] = "gelu"
answer("gelu.json", "activation that RTNeural does not have", content, refused='unknown activation "gelu"')
content = keras(*LSTM_LAYERS)
content["layers"][0]["recurrent_activation"] = "hard_sigmoid"
answer("hard_sigmoid.json", "LSTM with hard sigmoid", content, refused='expected "sigmoid" in a recurrent layer')
content = keras(*LSTM_LAYERS)
content["layers"] = []
answer("no_layers.json", "no layers", content, refused="layers: is empty")


def proteus(seed, unit="LSTM", inputs=1, layers=1, hidden=3, skip=1, **data):
    torch.manual_seed(seed)
    core = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}[unit](inputs, hidden, num_layers=layers)
    head = torch.nn.Linear(hidden, 1)
    randomize(core, seed), randomize(head, seed + 1)
    state = {f"rec.{name}": rounded_nested(value.tolist()) for name, value in core.named_parameters()}
    state |= {f"lin.{name}": rounded_nested(value.tolist()) for name, value in head.named_parameters()}
    content = {"model_data": {"model": "SimpleRNN", "input_size": inputs, "skip": skip, "output_size": 1, "unit_type": unit,
                              "num_layers": layers, "hidden_size": hidden, "bias_fl": True, **data}, "state_dict": state}

    def run(signal):
        x = torch.stack([signal[0]] + [torch.full_like(signal[0], 0.5)] * (inputs - 1), -1)
        y = head.double()(core.double()(x)[0])[:, 0]
        return (y + signal[0] if skip else y)[None]

    return content, heard(run)


group("Proteus")
answer("proteus.json", "LSTM as Proteus writes it: 44,100 Hz, skip", *proteus(70), rate=44_100)
answer("proteus_no_skip.json", "no skip", *proteus(71, skip=0), rate=44_100)
answer("proteus_gru.json", "GRU of two layers", *proteus(72, "GRU", layers=2), rate=44_100)
answer("proteus_knob.json", "one knob, which stands in the middle", *proteus(73, inputs=2), rate=44_100)
answer("proteus_rate.json", "another rate", *proteus(74, sample_rate=48_000), rate=48_000)
answer("proteus_float.json", "sizes written as 3.0", *proteus(75, hidden_size=3.0), rate=44_100)
content, _ = proteus(76)
content["model_data"]["unit_type"] = "RNN"
answer("proteus_rnn.json", "plain RNN", content, refused='unknown unit type "RNN"')
content, _ = proteus(77)
del content["state_dict"]["lin.bias"]
answer("proteus_no_bias.json", "a weight is missing", content, refused='"lin.bias" is missing')

with open("input.json", "w") as file:
    json.dump(SIGNAL, file)
with open("answers.json", "w", encoding="utf-8") as file:
    file.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in ANSWERS) + "\n]\n")
