//! Values that the audio thread reads of an instance, and reports to it.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crossbeam_utils::atomic::AtomicCell;
use ondes_engine::pipeline::InputChannels;
use ondes_engine::realtime::Quality;

use crate::macros::ControlMapping;
use crate::programs::{MidiBanks, ProgramNumber};

/// Marks a program change that was requested.
const REQUESTED: u32 = 1 << 31;

/// Values that the audio thread reads of an instance, and reports to it without waiting.
pub struct AudioLink {
    /// A control mapping that has arrived, and one that was replaced.
    arrival: AtomicCell<Option<Box<ControlMapping>>>,
    retired: AtomicCell<Option<Box<ControlMapping>>>,
    pub(super) release_ms: AtomicCell<f32>,
    pub(super) uses_audio_input: AtomicBool,
    /// Largest variant that may be used, 0 … 1.
    pub(super) size: AtomicCell<f32>,
    pub(super) quality: AtomicCell<Quality>,
    /// Channels of a stereo input to process.
    pub(super) channels: AtomicCell<InputChannels>,
    /// Reason of a panic, until the instance has it.
    #[expect(
        clippy::box_collection,
        reason = "one word, so that the cell takes no lock"
    )]
    pub(super) failure: AtomicCell<Option<Box<String>>>,
    /// Scene that the parameter asked for last, from 0.
    pub(super) scene: AtomicUsize,
    variant_requested: AtomicBool,
    scene_requested: AtomicBool,
    /// Scenes to go on, which the main thread takes.
    pub(super) scene_steps: AtomicI32,
    /// Banks of program changes.
    pub midi_banks: MidiBanks,
    /// Program changes choose more than scenes.
    has_programs: AtomicBool,
    /// The last program change, which the main thread takes, with [`REQUESTED`]; else 0.
    program: AtomicU32,
}

impl Default for AudioLink {
    fn default() -> Self {
        Self {
            arrival: AtomicCell::new(None),
            retired: AtomicCell::new(None),
            release_ms: AtomicCell::default(),
            uses_audio_input: AtomicBool::default(),
            size: AtomicCell::new(1.0),
            quality: AtomicCell::default(),
            channels: AtomicCell::new(InputChannels::Stereo),
            failure: AtomicCell::new(None),
            scene: AtomicUsize::new(0),
            variant_requested: AtomicBool::default(),
            scene_requested: AtomicBool::default(),
            scene_steps: AtomicI32::new(0),
            midi_banks: MidiBanks::default(),
            has_programs: AtomicBool::default(),
            program: AtomicU32::new(0),
        }
    }
}

impl AudioLink {
    /// Returns the time in which the model's notes fall by 60 dB after their release, ms, unless a
    /// control changes it.
    #[must_use]
    pub fn release_ms(&self) -> f32 {
        self.release_ms.load()
    }

    /// Returns whether the model processes audio input, as effects and codecs do, whatever the
    /// control source.
    #[must_use]
    pub fn uses_audio_input(&self) -> bool {
        self.uses_audio_input.load(Relaxed)
    }

    /// Notes the requested size, quality and channels. If any has changed, the main thread must
    /// call
    /// [`InstanceHandle::apply_requested_variant`](super::InstanceHandle::apply_requested_variant),
    /// as this thread cannot load models.
    pub fn request_variant(&self, size: f32, quality: Quality, channels: InputChannels) {
        let is_other = size.to_bits() != self.size.load().to_bits()
            || quality != self.quality.load()
            || channels != self.channels.load();
        self.variant_requested.store(is_other, Relaxed);
    }

    /// Notes the requested scene, from 0. If it has changed, the main thread must call
    /// [`InstanceHandle::follow_scene`](super::InstanceHandle::follow_scene).
    pub fn request_scene(&self, scene: usize) {
        self.scene_requested
            .store(scene != self.scene.load(Relaxed), Relaxed);
    }

    /// Asks for a number of scenes further on, or back; the main thread must be called as for
    /// [`request_scene`](Self::request_scene).
    pub fn step_scene(&self, steps: i32) {
        self.scene_steps.fetch_add(steps, Relaxed);
    }

    /// Returns whether program changes are to be
    /// [requested](Self::request_program), as they choose more than scenes.
    #[must_use]
    pub fn has_programs(&self) -> bool {
        self.has_programs.load(Relaxed)
    }

    pub(super) fn set_has_programs(&self, has_programs: bool) {
        self.has_programs.store(has_programs, Relaxed);
    }

    /// Notes a program change; the main thread must call
    /// [`InstanceHandle::follow_program`](super::InstanceHandle::follow_program).
    pub fn request_program(&self, number: ProgramNumber) {
        let packed = u32::from(number.bank) << 7 | u32::from(number.program);
        self.program.store(REQUESTED | packed, Relaxed);
    }

    pub(super) fn take_program(&self) -> Option<ProgramNumber> {
        let packed = self.program.swap(0, Relaxed);
        (packed != 0).then_some(ProgramNumber {
            bank: (packed >> 7 & 0x3FFF) as u16,
            program: (packed & 0x7F) as u8,
        })
    }

    /// Returns whether the main thread has to be called.
    #[must_use]
    pub fn needs_main_thread(&self) -> bool {
        let requests = [&self.variant_requested, &self.scene_requested];
        requests.iter().any(|requested| requested.load(Relaxed))
            || self.scene_steps.load(Relaxed) != 0
            || self.program.load(Relaxed) != 0
    }

    /// Takes the newest control mapping, and returns whether there is one.
    pub fn receive_mapping(&self, mapping: &mut Box<ControlMapping>) -> bool {
        let Some(new) = self.arrival.take() else {
            return false;
        };
        // If the previous mapping has not been fetched yet it leaks, a few bytes, as the audio
        // thread must not free memory.
        if let Some(unfetched) = self.retired.swap(Some(std::mem::replace(mapping, new))) {
            std::mem::forget(unfetched);
        }
        true
    }

    /// Reports the reason of a panic, after which nothing is played. Allocates.
    pub fn report_failure(&self, reason: String) {
        self.failure.store(Some(Box::new(reason)));
    }

    /// Sends a control mapping, or withdraws one that was not received. Not for the audio thread.
    pub(super) fn send_mapping(&self, mapping: Option<ControlMapping>) {
        drop(self.retired.take());
        drop(self.arrival.swap(mapping.map(Box::new)));
    }
}
