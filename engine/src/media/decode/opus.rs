//! Opus (RFC 6716) in Ogg and Matroska. Symphonia reads the containers, the crate `opus-decoder` decodes.

use std::sync::LazyLock;

use opus_decoder::{OpusDecoder as Stream, OpusMultistreamDecoder};
use symphonia::core::audio::{AsGenericAudioBufferRef, AudioBuffer, AudioMut, AudioSpec, GenericAudioBufferRef};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions, FinalizeResult};
use symphonia::core::codecs::registry::{CodecRegistry, RegisterableAudioDecoder, SupportedAudioCodec};
use symphonia::core::errors::{Error, Result, decode_error, unsupported_error};
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
    streams: usize,
    coupled_streams: usize,
    /// Decoded channel of each output channel.
    mapping: Vec<u8>,
}

impl OpusHead {
    /// Parses the codec data of an Opus track; `None` if they are not valid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [_version, channels, skip_low, skip_high, _, _, _, _, gain_low, gain_high, family, rest @ ..] =
            bytes.strip_prefix(b"OpusHead")?
        else {
            return None;
        };
        let channels = usize::from(*channels);
        let (streams, coupled_streams, mapping): (_, _, Vec<u8>) = match (family, rest) {
            (0, _) if (1..=2).contains(&channels) => (1, channels - 1, (0..channels as u8).collect()),
            (0, _) => return None,
            (_, [streams, coupled, mapping @ ..]) => {
                let order = if *family == 1 { surround_order(channels) } else { &[] };
                let source = |channel: usize| mapping.get(order.get(channel).copied().unwrap_or(channel)).copied();
                (usize::from(*streams), usize::from(*coupled), (0..channels).map(source).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Self {
            channels,
            pre_skip: usize::from(u16::from_le_bytes([*skip_low, *skip_high])),
            gain_db: f32::from(i16::from_le_bytes([*gain_low, *gain_high])) / 256.0,
            streams,
            coupled_streams,
            mapping,
        })
    }
}

/// Returns the place in Vorbis order of each channel in the order of WAV files: left, right, centre, low frequencies,
/// rear, sides.
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
    decoder: OpusMultistreamDecoder,
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
        self.decoder.reset();
    }

    fn codec_info(&self) -> &CodecInfo {
        &Self::supported_codecs()[0].info
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.parameters
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        self.sound.clear();
        let frames = match self.decoder.decode_float(packet.data, &mut self.interleaved, false) {
            Ok(frames) => frames,
            Err(_) => return decode_error("opus: invalid packet"),
        };
        let samples = &mut self.interleaved[..frames * self.channels];
        samples.iter_mut().for_each(|sample| *sample *= self.gain);
        self.sound.render_uninit(Some(frames));
        self.sound.copy_from_slice_interleaved(&samples);
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
    fn try_registry_new(parameters: &AudioCodecParameters, _: &AudioDecoderOptions) -> Result<Box<dyn AudioDecoder>> {
        let head = parameters.extra_data.as_deref().and_then(OpusHead::parse);
        let (Some(head), Some(channels)) = (head, parameters.channels.clone()) else {
            return unsupported_error("opus: invalid header");
        };
        if head.channels != channels.count() {
            return unsupported_error("opus: the container has another number of channels");
        }
        let decoder =
            OpusMultistreamDecoder::new(RATE, head.channels, head.streams, head.coupled_streams, &head.mapping);
        let decoder = decoder.map_err(|_| Error::Unsupported("opus: invalid header"))?;
        Ok(Box::new(Self {
            parameters: parameters.clone(),
            decoder,
            channels: head.channels,
            gain: db_to_amplitude(head.gain_db),
            skip: head.pre_skip,
            interleaved: vec![0.0; Stream::MAX_FRAME_SIZE_48K * head.channels],
            sound: AudioBuffer::new(AudioSpec::new(RATE, channels), Stream::MAX_FRAME_SIZE_48K),
        }))
    }

    fn supported_codecs() -> &'static [SupportedAudioCodec] {
        const INFO: CodecInfo = CodecInfo { short_name: "opus", long_name: "Opus", profiles: &[] };
        &[SupportedAudioCodec { id: CODEC_ID_OPUS, info: INFO }]
    }
}
