//! Opus (RFC 6716) in Ogg and Matroska. Symphonia reads the containers, the crate `opus-pure`
//! decodes.

use std::sync::LazyLock;

use opus_pure::{MAX_PACKET_SAMPLES, OpusMSDecoder};
use symphonia::core::audio::{
    AsGenericAudioBufferRef, AudioBuffer, AudioMut, AudioSpec, GenericAudioBufferRef,
};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{
    AudioCodecParameters, AudioDecoder, AudioDecoderOptions, FinalizeResult,
};
use symphonia::core::codecs::registry::{
    CodecRegistry, RegisterableAudioDecoder, SupportedAudioCodec,
};
use symphonia::core::errors::{Result, decode_error, unsupported_error};
use symphonia::core::packet::PacketRef;

use crate::dsp::level::db_to_amplitude;

/// Sample rate of every decoded stream, Hz.
const RATE: u32 = 48_000;

/// Returns all codecs: those of Symphonia, and Opus.
pub(super) fn codecs() -> &'static CodecRegistry {
    static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
        let mut codecs = CodecRegistry::new();
        symphonia::default::register_enabled_codecs(&mut codecs);
        codecs.register_audio_decoder::<OpusDecoder>();
        codecs
    });
    &CODECS
}

/// Identification header of a stream (RFC 7845, section 5.1).
pub(super) struct OpusHead {
    channels: usize,
    /// Frames at the start to discard.
    pub pre_skip: usize,
    gain_db: f32,
    /// Mapping family: 0 for one or two channels, 1 for surround sound.
    family: u8,
    /// Streams, pairs of channels among them and the mapping of channels; empty in family 0.
    layout: Vec<u8>,
}

impl OpusHead {
    /// Parses the codec data of an Opus track; `None` if they are not valid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, layout) = bytes.strip_prefix(b"OpusHead")?.split_first_chunk::<11>()?;
        let [
            version,
            channels,
            skip_first,
            skip_second,
            _,
            _,
            _,
            _,
            gain_first,
            gain_second,
            family,
        ] = *head;
        // In MP4 the version is 0 and numbers are big-endian; Symphonia passes them on as they are.
        let number = |bytes: [u8; 2]| {
            if version == 0 {
                u16::from_be_bytes(bytes)
            } else {
                u16::from_le_bytes(bytes)
            }
        };
        Some(Self {
            channels: usize::from(channels),
            pre_skip: usize::from(number([skip_first, skip_second])),
            gain_db: f32::from(number([gain_first, gain_second]).cast_signed()) / 256.0,
            family,
            layout: layout.to_vec(),
        })
    }

    /// Creates a decoder; `None` unless the layout is the usual one for the number of channels.
    fn decoder(&self) -> Option<OpusMSDecoder> {
        let decoder = OpusMSDecoder::new(RATE as i32, self.channels, self.family).ok()?;
        let usual = decoder.layout();
        let streams = [usual.nb_streams as u8, usual.nb_coupled_streams as u8];
        let is_usual = self.family == 0
            || self
                .layout
                .starts_with(&[&streams, usual.mapping.as_slice()].concat());
        is_usual.then_some(decoder)
    }
}

/// Returns the place in Vorbis order of each channel in the order of WAV files: left, right,
/// centre, low frequencies, rear, sides.
fn surround_order(channels: usize) -> &'static [usize] {
    match channels {
        3 => &[0, 2, 1],
        5 => &[0, 2, 1, 3, 4],
        6 => &[0, 2, 1, 5, 3, 4],
        7 => &[0, 2, 1, 6, 5, 3, 4],
        8 => &[0, 2, 1, 7, 5, 6, 3, 4],
        _ => &[],
    }
}

struct OpusDecoder {
    parameters: AudioCodecParameters,
    decoder: OpusMSDecoder,
    channels: usize,
    gain: f32,
    /// Frames still to be discarded.
    skip: usize,
    /// Decoded packet, interleaved.
    interleaved: Vec<f32>,
    sound: AudioBuffer<f32>,
}

impl AudioDecoder for OpusDecoder {
    fn reset(&mut self) {
        // Fails for no valid decoder.
        drop(self.decoder.reset_state());
    }

    fn codec_info(&self) -> &CodecInfo {
        &Self::supported_codecs()[0].info
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.parameters
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        self.sound.clear();
        let Ok(frames) =
            self.decoder
                .decode(packet.data, MAX_PACKET_SAMPLES, &mut self.interleaved)
        else {
            return decode_error("opus: invalid packet");
        };
        let order = surround_order(self.channels);
        let interleaved = &self.interleaved[..frames * self.channels];
        self.sound.render_uninit(Some(frames));
        for (channel, plane) in self.sound.iter_planes_mut().enumerate() {
            let place = order.get(channel).copied().unwrap_or(channel);
            let samples = interleaved.iter().skip(place).step_by(self.channels);
            plane
                .iter_mut()
                .zip(samples)
                .for_each(|(to, sample)| *to = sample * self.gain);
        }
        let skipped = self.skip.min(frames);
        self.skip -= skipped;
        let end = usize::try_from(packet.trim_end.get()).unwrap_or(usize::MAX);
        self.sound.trim(skipped, end.min(frames - skipped));
        Ok(self.sound.as_generic_audio_buffer_ref())
    }

    fn finalize(&mut self) -> FinalizeResult {
        FinalizeResult::default()
    }

    fn last_decoded(&self) -> GenericAudioBufferRef<'_> {
        self.sound.as_generic_audio_buffer_ref()
    }
}

impl RegisterableAudioDecoder for OpusDecoder {
    fn try_registry_new(
        parameters: &AudioCodecParameters,
        _: &AudioDecoderOptions,
    ) -> Result<Box<dyn AudioDecoder>> {
        let head = parameters.extra_data.as_deref().and_then(OpusHead::parse);
        let (Some(head), Some(channels)) = (head, parameters.channels.clone()) else {
            return unsupported_error("opus: invalid header");
        };
        let Some(decoder) = head.decoder().filter(|_| head.channels == channels.count()) else {
            return unsupported_error("opus: unusual channels");
        };
        Ok(Box::new(Self {
            parameters: parameters.clone(),
            decoder,
            channels: head.channels,
            gain: db_to_amplitude(head.gain_db),
            skip: head.pre_skip,
            interleaved: vec![0.0; MAX_PACKET_SAMPLES * head.channels],
            sound: AudioBuffer::new(AudioSpec::new(RATE, channels), MAX_PACKET_SAMPLES),
        }))
    }

    fn supported_codecs() -> &'static [SupportedAudioCodec] {
        const INFO: CodecInfo = CodecInfo {
            short_name: "opus",
            long_name: "Opus",
            profiles: &[],
        };
        &[SupportedAudioCodec {
            id: CODEC_ID_OPUS,
            info: INFO,
        }]
    }
}
