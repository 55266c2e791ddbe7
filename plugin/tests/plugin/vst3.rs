//! The VST3 interfaces of the shared object, compared with its CLAP.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr, ComWrapper, Interface};

use crate::host::{EFFECT, Host, HostEvent, INSTRUMENT, energy, json, sine, state, state_content};
use crate::vst3_module::{Application, classes, factory};

/// Event list of one block.
struct Events(RefCell<Vec<Event>>);

impl Class for Events {
    type Interfaces = (IEventList,);
}

impl IEventListTrait for Events {
    unsafe fn getEventCount(&self) -> int32 {
        self.0.borrow().len() as int32
    }

    unsafe fn getEvent(&self, index: int32, event: *mut Event) -> tresult {
        match self.0.borrow().get(index as usize) {
            Some(found) => {
                // SAFETY: the caller passes room for one event.
                unsafe { *event = *found };
                kResultOk
            }
            None => kInvalidArgument,
        }
    }

    unsafe fn addEvent(&self, event: *mut Event) -> tresult {
        // SAFETY: the caller passes one event.
        self.0.borrow_mut().push(unsafe { *event });
        kResultOk
    }
}

fn note_on(offset: i32, key: i16, velocity: f32) -> Event {
    let note = NoteOnEvent { channel: 0, pitch: key, tuning: 0.0, velocity, length: 0, noteId: -1 };
    Event {
        busIndex: 0,
        sampleOffset: offset,
        ppqPosition: 0.0,
        flags: 0,
        r#type: Event_::EventTypes_::kNoteOnEvent as u16,
        __field0: Event__type0 { noteOn: note },
    }
}

/// Automation points of one parameter in one block: sample and normalised value.
struct ParameterQueue {
    id: ParamID,
    points: Vec<(i32, f64)>,
}

impl Class for ParameterQueue {
    type Interfaces = (IParamValueQueue,);
}

impl IParamValueQueueTrait for ParameterQueue {
    unsafe fn getParameterId(&self) -> ParamID {
        self.id
    }

    unsafe fn getPointCount(&self) -> int32 {
        self.points.len() as int32
    }

    unsafe fn getPoint(&self, index: int32, offset: *mut int32, value: *mut ParamValue) -> tresult {
        let Some(point) = self.points.get(index as usize) else { return kInvalidArgument };
        // SAFETY: the caller passes room for both.
        unsafe { (*offset, *value) = *point };
        kResultOk
    }

    unsafe fn addPoint(&self, _: int32, _: ParamValue, _: *mut int32) -> tresult {
        kNotImplemented
    }
}

/// Automation of at most one parameter in one block.
struct Changes(Option<ComPtr<IParamValueQueue>>);

impl Class for Changes {
    type Interfaces = (IParameterChanges,);
}

impl IParameterChangesTrait for Changes {
    unsafe fn getParameterCount(&self) -> int32 {
        int32::from(self.0.is_some())
    }

    unsafe fn getParameterData(&self, index: int32) -> *mut IParamValueQueue {
        self.0.as_ref().filter(|_| index == 0).map_or(null_mut(), |queue| queue.as_ptr())
    }

    unsafe fn addParameterData(&self, _: *const ParamID, _: *mut int32) -> *mut IParamValueQueue {
        null_mut()
    }
}

/// Component handler that accepts everything. The wrapper requires one before a state is loaded.
struct Handler;

impl Class for Handler {
    type Interfaces = (IComponentHandler,);
}

impl IComponentHandlerTrait for Handler {
    unsafe fn beginEdit(&self, _: ParamID) -> tresult {
        kResultOk
    }

    unsafe fn performEdit(&self, _: ParamID, _: ParamValue) -> tresult {
        kResultOk
    }

    unsafe fn endEdit(&self, _: ParamID) -> tresult {
        kResultOk
    }

    unsafe fn restartComponent(&self, _: int32) -> tresult {
        kResultOk
    }
}

/// In-memory stream and its read position.
struct Stream(RefCell<(Vec<u8>, usize)>);

impl Class for Stream {
    type Interfaces = (IBStream,);
}

impl IBStreamTrait for Stream {
    unsafe fn read(&self, to: *mut c_void, length: int32, read: *mut int32) -> tresult {
        let (bytes, place) = &mut *self.0.borrow_mut();
        let length = (length as usize).min(bytes.len() - *place);
        // SAFETY: the caller passes room for that much, and for the count if it wants that.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes[*place..].as_ptr(), to.cast(), length);
            if let Some(read) = read.as_mut() {
                *read = length as int32;
            }
        }
        *place += length;
        kResultOk
    }

    unsafe fn write(&self, from: *mut c_void, length: int32, written: *mut int32) -> tresult {
        // SAFETY: the caller passes that many bytes, and room for the count if it wants that.
        unsafe {
            self.0.borrow_mut().0.extend_from_slice(std::slice::from_raw_parts(from.cast(), length as usize));
            if let Some(written) = written.as_mut() {
                *written = length;
            }
        }
        kResultOk
    }

    unsafe fn seek(&self, _: int64, _: int32, _: *mut int64) -> tresult {
        kNotImplemented
    }

    unsafe fn tell(&self, _: *mut int64) -> tresult {
        kNotImplemented
    }
}

fn stream(bytes: Vec<u8>) -> ComWrapper<Stream> {
    ComWrapper::new(Stream(RefCell::new((bytes, 0))))
}

/// Returns the id of the parameter with that title.
///
/// # Safety
/// On the main thread.
unsafe fn id_of(controller: &ComPtr<IEditController>, name: &str) -> ParamID {
    // SAFETY: the controller fills the structure that it gets.
    let all = (0..unsafe { controller.getParameterCount() }).map(|index| unsafe {
        let mut info: ParameterInfo = std::mem::zeroed();
        assert_eq!(controller.getParameterInfo(index, &mut info), kResultOk);
        let title: Vec<u16> = info.title.iter().copied().take_while(|unit| *unit != 0).collect();
        (String::from_utf16(&title).unwrap(), info.id)
    });
    { all }.find(|(title, _)| title == name).expect("the parameter exists").1
}

/// Result of [`play`].
struct Played {
    latency: usize,
    tail: usize,
    /// The left channel.
    sound: Vec<f32>,
    /// The saved state afterwards.
    state: Vec<u8>,
}

/// Creates a component, loads a state, and plays `input` with a note at the start and one parameter change: name,
/// sample, value.
fn play(
    factory: &ComPtr<IPluginFactory>,
    class: &TUID,
    state: &[u8],
    input: &[f32],
    block: usize,
    change: (&str, usize, f64),
) -> Played {
    // SAFETY: the calls follow VST3's order, on one thread; buffers outlive each call.
    unsafe {
        let mut object = null_mut();
        let interface = IComponent::IID;
        assert_eq!(factory.createInstance(class.as_ptr(), interface.as_ptr().cast(), &mut object), kResultOk);
        let component = ComPtr::<IComponent>::from_raw(object.cast()).unwrap();
        let application = ComWrapper::new(Application).to_com_ptr::<FUnknown>().unwrap();
        assert_eq!(component.initialize(application.as_ptr()), kResultOk);
        let controller: ComPtr<IEditController> = component.cast().expect("one object for both");
        assert!(controller.getParameterCount() >= 15);
        let view = ComPtr::from_raw(controller.createView(ViewType::kEditor)).expect("a window");
        assert_eq!(view.isPlatformTypeSupported(kPlatformTypeX11EmbedWindowID), kResultOk);
        drop(view);
        // VST3 delivers controllers as parameters; the mapping must offer learnable ones.
        let mapping: ComPtr<IMidiMapping> = component.cast().expect("it listens to MIDI");
        let mut parameter = 0;
        assert_eq!(mapping.getMidiControllerAssignment(0, 0, 20, &mut parameter), kResultOk);
        let handler = ComWrapper::new(Handler).to_com_ptr::<IComponentHandler>().unwrap();
        assert_eq!(controller.setComponentHandler(handler.as_ptr()), kResultOk);
        let state = stream(state.to_vec());
        assert_eq!(component.setState(state.as_com_ref::<IBStream>().unwrap().as_ptr()), kResultOk);
        let (name, at, value) = change;
        let id = id_of(&controller, name);
        let processor: ComPtr<IAudioProcessor> = component.cast().unwrap();
        let mut setup = ProcessSetup {
            processMode: ProcessModes_::kOffline as i32,
            symbolicSampleSize: SymbolicSampleSizes_::kSample32 as i32,
            maxSamplesPerBlock: block as i32,
            sampleRate: 48_000.0,
        };
        assert_eq!(processor.setupProcessing(&mut setup), kResultOk);
        for direction in [BusDirections_::kInput, BusDirections_::kOutput] {
            assert_eq!(component.getBusCount(MediaTypes_::kAudio as i32, direction as i32), 1);
            component.activateBus(MediaTypes_::kAudio as i32, direction as i32, 0, 1);
        }
        assert_eq!(component.setActive(1), kResultOk);
        processor.setProcessing(1);
        let tail = processor.getTailSamples() as usize;
        let mut sound = Vec::new();
        for (index, piece) in input.chunks(block).enumerate() {
            let events = Events(RefCell::new(if index == 0 { vec![note_on(10, 60, 0.8)] } else { Vec::new() }));
            let events = ComWrapper::new(events).to_com_ptr::<IEventList>().unwrap();
            let here = (index * block..index * block + piece.len()).contains(&at);
            let points = vec![((at % block) as i32, value)];
            let queue = here.then(|| ComWrapper::new(ParameterQueue { id, points }).to_com_ptr().unwrap());
            let changes = ComWrapper::new(Changes(queue)).to_com_ptr::<IParameterChanges>().unwrap();
            let mut inputs = [piece.to_vec(), piece.to_vec()];
            let mut outputs = [vec![f32::NAN; piece.len()], vec![f32::NAN; piece.len()]];
            let mut ins = inputs.each_mut().map(|channel| channel.as_mut_ptr());
            let mut outs = outputs.each_mut().map(|channel| channel.as_mut_ptr());
            let bus = |channels: &mut [*mut f32; 2]| AudioBusBuffers {
                numChannels: 2,
                silenceFlags: 0,
                __field0: AudioBusBuffers__type0 { channelBuffers32: channels.as_mut_ptr() },
            };
            let (mut ins, mut outs) = (bus(&mut ins), bus(&mut outs));
            let mut data = ProcessData {
                processMode: setup.processMode,
                symbolicSampleSize: setup.symbolicSampleSize,
                numSamples: piece.len() as i32,
                numInputs: 1,
                numOutputs: 1,
                inputs: &mut ins,
                outputs: &mut outs,
                inputParameterChanges: changes.as_ptr(),
                outputParameterChanges: null_mut(),
                inputEvents: events.as_ptr(),
                outputEvents: null_mut(),
                processContext: null_mut(),
            };
            assert_eq!(processor.process(&mut data), kResultOk);
            sound.extend_from_slice(&outputs[0]);
        }
        let latency = processor.getLatencySamples() as usize;
        processor.setProcessing(0);
        component.setActive(0);
        let saved = stream(Vec::new());
        assert_eq!(component.getState(saved.as_com_ref::<IBStream>().unwrap().as_ptr()), kResultOk);
        component.terminate();
        let state = std::mem::take(&mut saved.0.borrow_mut().0);
        Played { latency, tail, sound, state }
    }
}

/// Loads preset files as states, which is how VST3 hosts load presets.
fn check_presets(factory: &ComPtr<IPluginFactory>, classes: &[(String, TUID)]) {
    let presets = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/presets/");
    for ((_, class), (preset, model)) in classes.iter().zip([("harp", "Plucked"), ("singing-diodes", "Overdrive")]) {
        let preset = std::fs::read(format!("{presets}{preset}.ondes-preset")).unwrap();
        let said: serde_json::Value = serde_json::from_slice(&preset).unwrap();
        let played = play(factory, class, &preset, &vec![0.1; 24_000], 512, ("Macro 2", 9_001, 0.9));
        assert!(energy(&played.sound) > 1e-7);
        let state = state_content(&played.state);
        assert_eq!(state["fields"]["ondes"]["model"]["name"], model);
        let (gain, expected) = (&state["params"]["output_gain"]["f32"], &said["parameters"]["output_gain"]);
        assert!((gain.as_f64().unwrap() - expected.as_f64().unwrap_or(0.0)).abs() < 1e-6, "{gain}, not {expected}");
    }
}

#[test]
fn vst3_audio_and_states_equal_the_clap() {
    // One test for everything, because module and factory exist once per process.
    let factory = factory();
    let classes = classes(&factory);
    let names: Vec<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Ondes", "Ondes FX"]);
    // Projects and presets refer to the plugins by these ids.
    let ids: Vec<String> =
        classes.iter().map(|(_, id)| id.iter().map(|byte| format!("{byte:02X}")).collect()).collect();
    assert_eq!(ids, ["D2832EC03E945937819AFEB1EEE27629", "1E84D1BD68105DC8AC482C228F2986D7"]);
    let input = sine(24_000, 0.3);
    for ((_, class), id) in classes.iter().zip([INSTRUMENT, EFFECT]) {
        // The first round loads a state saved by the CLAP, the second one saved by the VST3.
        let mut saved = json(&Host::new(id).save());
        saved["params"]["driver"] = serde_json::json!({ "string": "inline" });
        let mut before = state(&saved);
        for (name, at, value) in [("Macro 2", 9_001, 0.9), ("Output gain", 7_003, 0.3)] {
            let played = play(&factory, class, &before, &input, 512, (name, at, value));
            let mut host = Host::new(id);
            assert!(host.load(&before));
            host.set_offline(true);
            host.activate(48_000.0, 512);
            assert_eq!((played.latency, played.tail), (host.latency(), host.tail()));
            let mut events = vec![(at, HostEvent::SetParameter(name, value))];
            if id == INSTRUMENT {
                events.insert(0, (10, HostEvent::NoteOn(60, f64::from(0.8_f32))));
            }
            let expected = host.play(input.len(), 512, &events, Some(&input));
            assert!(energy(&expected[2 * at..]) > 1e-7);
            let same = played.sound.iter().zip(&expected);
            let apart = same.map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-6, "{id} {name}: {apart} apart");
            assert_eq!(state_content(&played.state), state_content(&host.save()), "{id} {name}");
            assert!((host.value(name) - value).abs() < 1e-6);
            before = played.state;
        }
    }
    check_presets(&factory, &classes);
}
