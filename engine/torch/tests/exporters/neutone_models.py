"""Exports small models with the package neutone-sdk, each with the sound that PyTorch computes with it.

Usage: neutone_models.py FOLDER
"""

import pathlib
import shutil
import sys
from typing import Dict, List

import torch
from neutone_sdk import ContinuousNeutoneParameter, NeutoneParameter
from neutone_sdk import WaveformToWaveformBase
from neutone_sdk.non_realtime_wrapper import NonRealtimeBase
from neutone_sdk.utils import save_neutone_model
from torch import Tensor

from reference import BLOCKS, Reference, signal

RATE = 48_000
BLOCK = 512


class Drive(torch.nn.Module):
    def forward(self, x: Tensor, gain_db: Tensor, shape: Tensor) -> Tensor:
        y = x * torch.pow(10.0, gain_db / 20.0)
        return torch.where(shape > 0.5, torch.tanh(y), y)


class Texts:
    """What the package asks of each model."""

    def get_model_name(self) -> str:
        return "Drive"

    def get_model_authors(self) -> List[str]:
        return ["A", "B"]

    def get_model_short_description(self) -> str:
        return "Gain and a curve."

    def get_model_long_description(self) -> str:
        return "Gain and a curve."

    def get_technical_description(self) -> str:
        return "Gain and a curve."

    def get_tags(self) -> List[str]:
        return ["test"]

    def get_model_version(self) -> str:
        return "1.0.0"

    def is_experimental(self) -> bool:
        return False


class RealTime(Texts, WaveformToWaveformBase):
    """An effect with a gain from -24 to 24 dB, -6 dB by default, and a curve."""

    def get_neutone_parameters(self) -> List[NeutoneParameter]:
        return [
            ContinuousNeutoneParameter("gain", "Gain in dB.", -6.0, -24.0, 24.0),
            ContinuousNeutoneParameter("curve", "A soft curve above 0.5.", 1.0),
        ]

    @torch.jit.export
    def is_input_mono(self) -> bool:
        return True

    @torch.jit.export
    def is_output_mono(self) -> bool:
        return True

    @torch.jit.export
    def get_native_sample_rates(self) -> List[int]:
        return [48_000]

    @torch.jit.export
    def get_native_buffer_sizes(self) -> List[int]:
        return [512]

    def aggregate_params(self, params: Tensor) -> Tensor:
        return params

    def do_forward_pass(self, x: Tensor, params: Dict[str, Tensor]) -> Tensor:
        return self.model(x, params["gain"], params["curve"])


class Stereo(RealTime):
    @torch.jit.export
    def is_input_mono(self) -> bool:
        return False

    @torch.jit.export
    def is_output_mono(self) -> bool:
        return False


class WholeSound(Texts, NonRealtimeBase):
    """A model that needs the whole sound at once; no player can play it."""

    def get_neutone_parameters(self) -> List[NeutoneParameter]:
        return [ContinuousNeutoneParameter("gain", "Gain in dB.", 0.0, -24.0, 24.0)]

    @torch.jit.export
    def get_audio_in_channels(self) -> List[int]:
        return [1]

    @torch.jit.export
    def get_audio_out_channels(self) -> List[int]:
        return [1]

    @torch.jit.export
    def get_native_sample_rates(self) -> List[int]:
        return [48_000]

    @torch.jit.export
    def get_native_buffer_sizes(self) -> List[int]:
        return []

    @torch.jit.export
    def is_one_shot_model(self) -> bool:
        return True

    def do_forward_pass(
        self,
        curr_block_idx: int,
        audio_in: List[Tensor],
        numerical_params: Dict[str, Tensor],
        text_params: List[str],
        tokens_params: List[List[int]],
    ) -> List[Tensor]:
        return [audio_in[0]]


def export(folder, name, model):
    run = folder / "runs" / name
    save_neutone_model(model, run, speed_benchmark=False, test_offline_mode=False)
    path = folder / f"{name}.nm"
    shutil.copy(run / "model.nm", path)
    return path


def main(folder):
    folder = pathlib.Path(folder)
    reference = Reference(folder)
    # First, since the package goes on asking for what models for real time must state.
    export(folder, "whole_sound", WholeSound(Drive()))
    for name, model in (("mono", RealTime(Drive())), ("stereo", Stereo(Drive()))):
        path = export(folder, name, model)
        script = torch.jit.load(str(path)).eval()
        script.set_daw_sample_rate_and_buffer_size(RATE, BLOCK)
        script.reset()
        assert script.calc_buffering_delay_samples() + script.calc_model_delay_samples() == 0
        # -6 dB as a share of -24 to 24, and the curve.
        defaults = torch.tensor([[0.375], [1.0], [0.0], [0.0]])
        sound = signal(1 if name == "mono" else 2, BLOCKS * BLOCK)
        with torch.inference_mode():
            # The host passes two channels.
            parts = [script(part.expand(2, -1).contiguous(), defaults.expand(-1, BLOCK).contiguous()).clone()
                     for part in sound.split(BLOCK, dim=-1)]
        output = torch.cat(parts, -1)[: sound.shape[0]]
        reference.record(name, path, sound, output, ["forward"], BLOCK)
    reference.write()


if __name__ == "__main__":
    main(sys.argv[1])
