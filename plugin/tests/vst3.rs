//! The VST3 side of the same shared object, through its own interfaces.

#![cfg(target_os = "linux")]

mod host;

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use host::{Do, EFFECT, Host, INSTRUMENT, energy};
use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr, ComWrapper, Interface};

/// The module as a host opens it; it stays open.
fn factory() -> ComPtr<IPluginFactory> {
    // SAFETY: it is our own object, and these are the entry points that VST3 names for Linux. The factory is ours to release.
    unsafe {
        let module = libloading::os::unix::Library::new(host::object()).unwrap();
        let enter = *module.get::<unsafe extern "C" fn(*mut c_void) -> bool>(b"ModuleEntry").unwrap();
        let get = *module.get::<unsafe extern "system" fn() -> *mut c_void>(b"GetPluginFactory").unwrap();
        assert!(enter(module.into_raw()));
        ComPtr::from_raw(get().cast()).unwrap()
    }
}

/// The classes that process audio, by name.
fn classes(factory: &ComPtr<IPluginFactory>) -> Vec<(String, TUID)> {
    // SAFETY: the factory fills what it is given.
    let all = (0..unsafe { factory.countClasses() }).map(|index| unsafe {
        let mut info: PClassInfo = std::mem::zeroed();
        assert_eq!(factory.getClassInfo(index, &mut info), kResultOk);
        let text = |field: &[char8]| CStr::from_ptr(field.as_ptr()).to_str().unwrap().to_owned();
        (text(&info.category), text(&info.name), info.cid)
    });
    all.filter(|(category, ..)| category == "Audio Module Class").map(|(_, name, cid)| (name, cid)).collect()
}

/// Who we are.
struct Application;

impl Class for Application {
    type Interfaces = (IHostApplication,);
}

impl IHostApplicationTrait for Application {
    unsafe fn getName(&self, name: *mut String128) -> tresult {
        // SAFETY: the caller gives room for a name.
        unsafe { (&mut (*name))[..2].copy_from_slice(&[u16::from(b'O'), 0]) };
        kResultOk
    }

    unsafe fn createInstance(&self, _: *mut TUID, _: *mut TUID, _: *mut *mut c_void) -> tresult {
        kNotImplemented
    }
}

/// Events for one block.
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
                // SAFETY: the caller gives room for one event.
                unsafe { *event = *found };
                kResultOk
            }
            None => kInvalidArgument,
        }
    }

    unsafe fn addEvent(&self, event: *mut Event) -> tresult {
        // SAFETY: the caller gives one event.
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

/// Plays a sound, and a note at its beginning, through a class; gives the latency and the left channel.
fn play(factory: &ComPtr<IPluginFactory>, class: &TUID, input: &[f32], block: usize) -> (usize, Vec<f32>) {
    // SAFETY: calls come in the order that VST3 asks for, on one thread; buffers outlive each call.
    unsafe {
        let mut object = null_mut();
        let wanted = IComponent::IID;
        assert_eq!(factory.createInstance(class.as_ptr(), wanted.as_ptr().cast(), &mut object), kResultOk);
        let component = ComPtr::<IComponent>::from_raw(object.cast()).unwrap();
        let application = ComWrapper::new(Application).to_com_ptr::<FUnknown>().unwrap();
        assert_eq!(component.initialize(application.as_ptr()), kResultOk);
        let controller: ComPtr<IEditController> = component.cast().expect("one object for both");
        assert!(controller.getParameterCount() >= 15);
        let view = ComPtr::from_raw(controller.createView(ViewType::kEditor)).expect("a window");
        assert_eq!(view.isPlatformTypeSupported(kPlatformTypeX11EmbedWindowID), kResultOk);
        drop(view);
        // Controllers come as parameters; those that could be learnt do.
        let mapping: ComPtr<IMidiMapping> = component.cast().expect("it listens to MIDI");
        let mut parameter = 0;
        assert_eq!(mapping.getMidiControllerAssignment(0, 0, 20, &mut parameter), kResultOk);
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
        let mut sound = Vec::new();
        for (index, piece) in input.chunks(block).enumerate() {
            let events = Events(RefCell::new(if index == 0 { vec![note_on(10, 60, 0.8)] } else { Vec::new() }));
            let events = ComWrapper::new(events).to_com_ptr::<IEventList>().unwrap();
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
                inputParameterChanges: null_mut(),
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
        component.terminate();
        (latency, sound)
    }
}

#[test]
fn sounds_as_the_clap_does() {
    let factory = factory();
    let classes = classes(&factory);
    let names: Vec<&str> = classes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Ondes", "Ondes FX"]);
    let input: Vec<f32> = (0..24_000).map(|n| 0.3 * (n as f32 * 0.043).sin()).collect();
    for ((_, class), id) in classes.iter().zip([INSTRUMENT, EFFECT]) {
        let (latency, sound) = play(&factory, class, &input, 512);
        let mut host = Host::new(id);
        host.set_offline(true);
        host.activate(48_000.0, 512);
        let todo = if id == INSTRUMENT { vec![(10, Do::On(60, f64::from(0.8_f32)))] } else { Vec::new() };
        let expected = host.play(input.len(), 512, &todo, Some(&input));
        assert!(energy(&expected) > 1e-6);
        // Which driver is chosen depends on how busy the machine is; what is heard does not.
        let (ours, theirs) = (latency, host.latency());
        let length = input.len() - ours.max(theirs);
        let same = sound[ours..][..length].iter().zip(&expected[theirs..][..length]);
        let apart = same.map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-6, "{id}: {apart} apart");
    }
}
