//! One VST3 instance in a host.

use std::cell::RefCell;
use std::ptr::null_mut;

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{ComPtr, ComWrapper, Interface};

use super::Application;
use super::objects::{Changes, Events, Handler, ParameterQueue, stream};

/// Parameter change: id, sample of the block, normalised value.
pub type Change = (ParamID, i32, f64);

/// A component that is its own controller, with stereo buses: an input, the effect's side-chain,
/// and an output. It has no component handler at first.
pub struct Instance {
    pub component: ComPtr<IComponent>,
    pub controller: ComPtr<IEditController>,
    pub processor: ComPtr<IAudioProcessor>,
    setup: ProcessSetup,
    _application: ComPtr<FUnknown>,
}

impl Instance {
    /// Creates and initialises an instance of that class.
    pub fn new(factory: &ComPtr<IPluginFactory>, class: &TUID) -> Self {
        // SAFETY: the calls follow VST3's order, and the host's context outlives the instance.
        unsafe {
            let mut object = null_mut();
            let interface = IComponent::IID;
            assert_eq!(
                factory.createInstance(class.as_ptr(), interface.as_ptr().cast(), &mut object),
                kResultOk
            );
            let component = ComPtr::<IComponent>::from_raw(object.cast()).unwrap();
            let application = ComWrapper::new(Application)
                .to_com_ptr::<FUnknown>()
                .unwrap();
            assert_eq!(component.initialize(application.as_ptr()), kResultOk);
            let setup = ProcessSetup {
                processMode: ProcessModes_::kOffline as i32,
                symbolicSampleSize: SymbolicSampleSizes_::kSample32 as i32,
                maxSamplesPerBlock: 512,
                sampleRate: 48_000.0,
            };
            Self {
                controller: component.cast().expect("one object for both"),
                processor: component.cast().unwrap(),
                component,
                setup,
                _application: application,
            }
        }
    }

    /// Sets the component handler, or none.
    pub fn set_handler(&self, handler: Option<&ComWrapper<Handler>>) {
        let handler = handler.map(|handler| handler.to_com_ptr::<IComponentHandler>().unwrap());
        let pointer = handler
            .as_ref()
            .map_or(null_mut(), |handler| handler.as_ptr());
        assert_eq!(
            // SAFETY: the instance counts its references to the handler.
            unsafe { self.controller.setComponentHandler(pointer) },
            kResultOk
        );
    }

    /// Loads a state, as hosts do: into the component, then into the controller.
    pub fn load(&self, state: &[u8]) -> bool {
        let [component, shared] = [state, state].map(|bytes| stream(bytes.to_vec()));
        // SAFETY: the streams live longer than the calls.
        unsafe {
            let loaded = self
                .component
                .setState(component.as_com_ref::<IBStream>().unwrap().as_ptr())
                == kResultOk;
            self.controller
                .setComponentState(shared.as_com_ref::<IBStream>().unwrap().as_ptr());
            loaded
        }
    }

    pub fn save(&self) -> Vec<u8> {
        let saved = stream(Vec::new());
        // SAFETY: the stream lives longer than the call.
        unsafe {
            assert_eq!(
                self.component
                    .getState(saved.as_com_ref::<IBStream>().unwrap().as_ptr()),
                kResultOk
            )
        };
        std::mem::take(&mut saved.0.borrow_mut().0)
    }

    /// Returns the id of the parameter with that label in the table.
    pub fn id(&self, label: &str) -> ParamID {
        let id = crate::host::parameter_id(label);
        // SAFETY: the controller fills the structure that it gets.
        let mut all = (0..unsafe { self.controller.getParameterCount() }).map(|index| unsafe {
            let mut info: ParameterInfo = std::mem::zeroed();
            assert_eq!(
                self.controller.getParameterInfo(index, &mut info),
                kResultOk
            );
            info.id
        });
        assert!(all.any(|listed| listed == id), "{label} is not listed");
        id
    }

    /// Returns the normalised value that the controller shows.
    pub fn value(&self, name: &str) -> f64 {
        // SAFETY: the controller is alive.
        unsafe { self.controller.getParamNormalized(self.id(name)) }
    }

    /// Sets a normalised value on the controller only.
    pub fn set_value(&self, name: &str, value: f64) {
        assert_eq!(
            // SAFETY: the controller is alive.
            unsafe { self.controller.setParamNormalized(self.id(name), value) },
            kResultOk
        );
    }

    /// Sets up and activates all buses and the instance; returns whether the instance accepts that.
    pub fn activate(&mut self, sample_rate: f64, block: usize) -> bool {
        (self.setup.sampleRate, self.setup.maxSamplesPerBlock) = (sample_rate, block as i32);
        // SAFETY: the calls follow VST3's order.
        unsafe {
            assert_eq!(self.processor.setupProcessing(&mut self.setup), kResultOk);
            for direction in [BusDirections_::kInput, BusDirections_::kOutput] {
                for index in 0..self
                    .component
                    .getBusCount(MediaTypes_::kAudio as i32, direction as i32)
                {
                    self.component.activateBus(
                        MediaTypes_::kAudio as i32,
                        direction as i32,
                        index,
                        1,
                    );
                }
            }
            self.component.setActive(1) == kResultOk
        }
    }

    pub fn set_active(&self, active: bool) {
        assert_eq!(
            // SAFETY: the component is alive and was set up.
            unsafe { self.component.setActive(active.into()) },
            kResultOk
        );
    }

    pub fn set_processing(&self, processing: bool) {
        assert_eq!(
            // SAFETY: the processor is alive and active.
            unsafe { self.processor.setProcessing(processing.into()) },
            kResultOk
        );
    }

    /// Processes one block of the same input on both channels, with a silent side-chain of the
    /// effect; returns the left channel.
    pub fn process(&self, input: &[f32], events: Vec<Event>, change: Option<Change>) -> Vec<f32> {
        // SAFETY: the component is alive.
        let buses = unsafe {
            self.component
                .getBusCount(MediaTypes_::kAudio as i32, BusDirections_::kInput as i32)
        };
        self.process_buses(input, buses, events, change)
    }

    /// As [`process`](Self::process), with the first buses of the inputs only, as if the others
    /// were not active.
    pub fn process_buses(
        &self,
        input: &[f32],
        buses: i32,
        events: Vec<Event>,
        change: Option<Change>,
    ) -> Vec<f32> {
        let [left, _] = self.process_channels([input; 2], buses, events, change);
        left
    }

    /// Sets the arrangement of all buses; returns whether the instance accepts it.
    pub fn arrange(&self, arrangement: SpeakerArrangement) -> bool {
        // SAFETY: the component is alive, and the arrays outlive the call.
        unsafe {
            let buses = |direction| {
                self.component
                    .getBusCount(MediaTypes_::kAudio as i32, direction as i32)
            };
            let all = |direction| vec![arrangement; buses(direction) as usize];
            let (mut inputs, mut outputs) =
                (all(BusDirections_::kInput), all(BusDirections_::kOutput));
            let (inputs, outputs) = (&mut inputs[..], &mut outputs[..]);
            let counts = [inputs.len() as i32, outputs.len() as i32];
            self.processor.setBusArrangements(
                inputs.as_mut_ptr(),
                counts[0],
                outputs.as_mut_ptr(),
                counts[1],
            ) == kResultOk
        }
    }

    /// Returns the arrangement of the output.
    pub fn arrangement(&self) -> SpeakerArrangement {
        let mut arrangement = 0;
        // SAFETY: the processor is alive.
        unsafe {
            self.processor
                .getBusArrangement(BusDirections_::kOutput as i32, 0, &mut arrangement)
        };
        arrangement
    }

    /// Processes one block with N channels per bus, with a silent side-chain of the effect; returns
    /// all channels.
    pub fn process_channels<const N: usize>(
        &self,
        input: [&[f32]; N],
        buses: i32,
        events: Vec<Event>,
        change: Option<Change>,
    ) -> [Vec<f32>; N] {
        let queue = change.map(|(id, offset, value)| ParameterQueue {
            id,
            points: vec![(offset, value)],
        });
        self.process_queue(input, buses, events, queue)
    }

    /// As [`process_channels`](Self::process_channels), with any points of one parameter.
    pub fn process_queue<const N: usize>(
        &self,
        input: [&[f32]; N],
        buses: i32,
        events: Vec<Event>,
        queue: Option<ParameterQueue>,
    ) -> [Vec<f32>; N] {
        let frames = input[0].len();
        let events = ComWrapper::new(Events(RefCell::new(events)))
            .to_com_ptr::<IEventList>()
            .unwrap();
        let queue = queue.map(|queue| ComWrapper::new(queue).to_com_ptr().unwrap());
        let changes = ComWrapper::new(Changes(queue))
            .to_com_ptr::<IParameterChanges>()
            .unwrap();
        let mut inputs = input.map(<[f32]>::to_vec);
        let mut side_chain = input.map(|_| vec![0.0; frames]);
        let mut outputs = input.map(|_| vec![f32::NAN; frames]);
        let mut ins = inputs.each_mut().map(|channel| channel.as_mut_ptr());
        let mut outs = outputs.each_mut().map(|channel| channel.as_mut_ptr());
        let mut sides = side_chain.each_mut().map(|channel| channel.as_mut_ptr());
        let bus = |channels: &mut [*mut f32; N]| AudioBusBuffers {
            numChannels: N as i32,
            silenceFlags: 0,
            __field0: AudioBusBuffers__type0 {
                channelBuffers32: channels.as_mut_ptr(),
            },
        };
        let (mut ins, mut outs) = ([bus(&mut ins), bus(&mut sides)], bus(&mut outs));
        let mut data = ProcessData {
            processMode: self.setup.processMode,
            symbolicSampleSize: self.setup.symbolicSampleSize,
            numSamples: frames as i32,
            numInputs: buses,
            numOutputs: 1,
            inputs: if buses > 0 {
                ins.as_mut_ptr()
            } else {
                null_mut()
            },
            outputs: &mut outs,
            inputParameterChanges: changes.as_ptr(),
            outputParameterChanges: null_mut(),
            inputEvents: events.as_ptr(),
            outputEvents: null_mut(),
            processContext: null_mut(),
        };
        // SAFETY: buffers and lists outlive the call.
        assert_eq!(unsafe { self.processor.process(&mut data) }, kResultOk);
        outputs
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: nothing uses the component afterwards but the release of its references.
        unsafe { self.component.terminate() };
    }
}
