//! The host's objects that a VST3 calls.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;

use vst3::Steinberg::Vst::*;
use vst3::Steinberg::*;
use vst3::{Class, ComPtr, ComWrapper};

/// Event list of one block.
pub struct Events(pub RefCell<Vec<Event>>);

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

pub fn note_on(offset: i32, key: i16, velocity: f32) -> Event {
    let note = NoteOnEvent {
        channel: 0,
        pitch: key,
        tuning: 0.0,
        velocity,
        length: 0,
        noteId: i32::from(key),
    };
    event(
        offset,
        Event_::EventTypes_::kNoteOnEvent,
        Event__type0 { noteOn: note },
    )
}

/// Returns a note expression of volume for the note of [`note_on`]; a value of 0.25 is 0 dB.
pub fn volume(offset: i32, key: i16, value: f64) -> Event {
    let expression = NoteExpressionValueEvent {
        typeId: NoteExpressionTypeIDs_::kVolumeTypeID,
        noteId: key.into(),
        value,
    };
    event(
        offset,
        Event_::EventTypes_::kNoteExpressionValueEvent,
        Event__type0 {
            noteExpressionValue: expression,
        },
    )
}

fn event(offset: i32, kind: Event_::EventTypes, content: Event__type0) -> Event {
    Event {
        busIndex: 0,
        sampleOffset: offset,
        ppqPosition: 0.0,
        flags: 0,
        r#type: kind as u16,
        __field0: content,
    }
}

/// Automation points of one parameter in one block: sample and normalised value.
pub struct ParameterQueue {
    pub id: ParamID,
    pub points: Vec<(i32, f64)>,
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
        let Some(point) = self.points.get(index as usize) else {
            return kInvalidArgument;
        };
        // SAFETY: the caller passes room for both.
        unsafe { (*offset, *value) = *point };
        kResultOk
    }

    unsafe fn addPoint(&self, _: int32, _: ParamValue, _: *mut int32) -> tresult {
        kNotImplemented
    }
}

/// Automation of at most one parameter in one block.
pub struct Changes(pub Option<ComPtr<IParamValueQueue>>);

impl Class for Changes {
    type Interfaces = (IParameterChanges,);
}

impl IParameterChangesTrait for Changes {
    unsafe fn getParameterCount(&self) -> int32 {
        int32::from(self.0.is_some())
    }

    unsafe fn getParameterData(&self, index: int32) -> *mut IParamValueQueue {
        self.0
            .as_ref()
            .filter(|_| index == 0)
            .map_or(null_mut(), |queue| queue.as_ptr())
    }

    unsafe fn addParameterData(&self, _: *const ParamID, _: *mut int32) -> *mut IParamValueQueue {
        null_mut()
    }
}

/// Component handler that accepts everything, and records the flags of restarts.
#[derive(Default)]
pub struct Handler(pub RefCell<Vec<int32>>);

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

    unsafe fn restartComponent(&self, flags: int32) -> tresult {
        self.0.borrow_mut().push(flags);
        kResultOk
    }
}

/// In-memory stream and its read position.
pub struct Stream(pub RefCell<(Vec<u8>, usize)>);

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
            self.0
                .borrow_mut()
                .0
                .extend_from_slice(std::slice::from_raw_parts(from.cast(), length as usize));
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

pub fn stream(bytes: Vec<u8>) -> ComWrapper<Stream> {
    ComWrapper::new(Stream(RefCell::new((bytes, 0))))
}
