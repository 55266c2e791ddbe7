//! A VST3 instance by its C++ interface.

use std::ptr::null_mut;

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;

use super::{Bus, Instance};
use crate::host::INSTRUMENT;
use crate::vst3_module::{self, classes, factory};

pub struct Vst3 {
    pub instance: vst3_module::instance::Instance,
    active: bool,
}

impl Vst3 {
    pub fn new(id: &str, state: &[u8]) -> Self {
        let factory = factory();
        let (_, class) = &classes(&factory)[usize::from(id != INSTRUMENT)];
        let instance = vst3_module::instance::Instance::new(&factory, class);
        assert!(instance.load(state));
        Self {
            instance,
            active: false,
        }
    }
}

/// Returns an arrangement of that many speakers.
fn speakers(channels: &u32) -> SpeakerArrangement {
    match channels {
        0 => SpeakerArr::kEmpty,
        1 => SpeakerArr::kMono,
        2 => SpeakerArr::kStereo,
        _ => SpeakerArr::k51,
    }
}

impl Instance for Vst3 {
    fn arrange(&mut self, inputs: &[u32], outputs: &[u32]) -> bool {
        let [mut inputs, mut outputs] =
            [inputs, outputs].map(|all| all.iter().map(speakers).collect::<Vec<_>>());
        let (ins, outs) = (inputs.len() as i32, outputs.len() as i32);
        // SAFETY: the processor is alive, and the arrays outlive the call.
        unsafe {
            let (inputs, outputs) = (inputs.as_mut_ptr(), outputs.as_mut_ptr());
            self.instance
                .processor
                .setBusArrangements(inputs, ins, outputs, outs)
                == kResultOk
        }
    }

    fn arrangement(&self) -> [Vec<u32>; 2] {
        let (component, processor) = (&self.instance.component, &self.instance.processor);
        [BusDirections_::kInput, BusDirections_::kOutput].map(|direction| {
            let (media, direction) = (MediaTypes_::kAudio as i32, direction as i32);
            let channels =
                // SAFETY: the component is alive, and fills the structures.
                (0..unsafe { component.getBusCount(media, direction) }).map(|index| unsafe {
                    let mut info: BusInfo = std::mem::zeroed();
                    assert_eq!(
                        component.getBusInfo(media, direction, index, &mut info),
                        kResultOk
                    );
                    let mut arrangement = 0;
                    assert_eq!(
                        processor.getBusArrangement(direction, index, &mut arrangement),
                        kResultOk
                    );
                    assert_eq!(
                        arrangement,
                        speakers(&(info.channelCount as u32)),
                        "information and arrangement agree"
                    );
                    info.channelCount as u32
                });
            channels.collect()
        })
    }

    fn activate(&mut self, sample_rate: f64, block: usize) -> bool {
        self.active = self.instance.activate(sample_rate, block);
        if self.active {
            self.instance.set_processing(true);
        }
        self.active
    }

    fn deactivate(&mut self) {
        if std::mem::take(&mut self.active) {
            self.instance.set_processing(false);
            self.instance.set_active(false);
        }
    }

    fn process(
        &mut self,
        inputs: Option<&[Bus]>,
        outputs: Option<&[Bus]>,
        frames: usize,
        is_wide: bool,
    ) {
        let buffers = |buses: Option<&[Bus]>| -> Vec<AudioBusBuffers> {
            let buffer = |bus: &Bus| AudioBusBuffers {
                numChannels: bus.channels as i32,
                silenceFlags: 0,
                __field0: AudioBusBuffers__type0 {
                    channelBuffers32: bus.pointers(is_wide).cast(),
                },
            };
            buses.unwrap_or_default().iter().map(buffer).collect()
        };
        let (mut ins, mut outs) = (buffers(inputs), buffers(outputs));
        let size = if is_wide {
            SymbolicSampleSizes_::kSample64
        } else {
            SymbolicSampleSizes_::kSample32
        };
        let mut data = ProcessData {
            processMode: ProcessModes_::kOffline as i32,
            symbolicSampleSize: size as i32,
            numSamples: frames as i32,
            // A null pointer for busses that are counted.
            numInputs: inputs.map_or(2, |inputs| inputs.len() as i32),
            numOutputs: outputs.map_or(1, |outputs| outputs.len() as i32),
            inputs: if inputs.is_some() {
                ins.as_mut_ptr()
            } else {
                null_mut()
            },
            outputs: if outputs.is_some() {
                outs.as_mut_ptr()
            } else {
                null_mut()
            },
            inputParameterChanges: null_mut(),
            outputParameterChanges: null_mut(),
            inputEvents: null_mut(),
            outputEvents: null_mut(),
            processContext: null_mut(),
        };
        assert_eq!(
            // SAFETY: the buffers live longer than the call.
            unsafe { self.instance.processor.process(&mut data) },
            kResultOk
        );
    }
}

impl Drop for Vst3 {
    fn drop(&mut self) {
        self.deactivate();
    }
}
