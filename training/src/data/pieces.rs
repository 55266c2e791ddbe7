//! Analysis of recordings of any length: decoded and resampled as a stream, analysed in pieces on
//! all cores.
//!
//! Pieces begin at fixed positions and are analysed with some sound before and after them, so that
//! the result depends neither on the number of threads nor on the blocks that the decoder returns.
//! Only the pitch that unvoiced frames hold is passed from piece to piece.

use std::path::Path;

use anyhow::Context;
use ondes_engine::dsp::analysis::{Analysis, AnalysisFrame};
use ondes_engine::dsp::resample::StreamResampler;
use ondes_engine::media::{Decoder, display_name};

use super::biquad::Biquad;
use super::features::Row;
use super::shard::DataFormat;

/// Rows of a piece: about half a minute.
const PIECE_ROWS: usize = 30;
/// Sound before a piece that the filters and the pitch tracker settle in, seconds: their memory is
/// a twentieth of it.
const LEAD_S: f64 = 1.0;

/// Part of a recording with the sound around it.
pub struct Piece {
    /// First frame of the piece.
    pub first_frame: usize,
    /// True for the last piece of a recording.
    pub last: bool,
    /// Sound, from `lead_frames` before the piece.
    samples: Vec<f32>,
    lead_frames: usize,
    frames: usize,
}

/// Result of the analysis of a piece.
pub struct AnalysedPiece {
    /// First frame.
    pub first_frame: usize,
    /// True for the last piece of a recording.
    pub last: bool,
    row: Row,
    /// Frames at the start that hold the pitch of the piece before.
    holding: usize,
}

/// Lengths that pieces are cut to.
struct Cut {
    format: DataFormat,
    frames: usize,
    lead_frames: usize,
    /// Samples that the analysis needs after a frame.
    tail: usize,
}

impl Cut {
    fn new(format: DataFormat) -> Self {
        let (rate, hop) = (f64::from(format.rate.sample_rate), format.rate.hop);
        Self {
            format,
            frames: PIECE_ROWS * format.row_frames(),
            lead_frames: (LEAD_S * rate / hop as f64).ceil() as usize,
            tail: Analysis::new(rate, hop).latency() + hop,
        }
    }

    /// Cuts a piece of `frames` out of sound that begins at the frame `start`.
    fn piece(
        &self,
        sound: &[f32],
        start: usize,
        first_frame: usize,
        frames: usize,
        last: bool,
    ) -> Piece {
        let hop = self.format.rate.hop;
        let from = first_frame.saturating_sub(self.lead_frames);
        let samples = &sound[(from - start) * hop..];
        let length = ((first_frame + frames - from) * hop + self.tail).min(samples.len());
        Piece {
            first_frame,
            last,
            samples: samples[..length].to_vec(),
            lead_frames: first_frame - from,
            frames,
        }
    }
}

/// Replaces the content of a buffer by the next block; returns false at the end.
pub type NextBlock<'a> = Box<dyn FnMut(&mut Vec<f32>) -> anyhow::Result<bool> + 'a>;

/// Sound of a recording, block by block.
pub struct SoundStream<'a> {
    /// Name, for errors.
    pub name: String,
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Frequency below which it is to be attenuated, Hz; 0 if it is filtered already.
    pub high_pass: u16,
    /// Its blocks.
    pub next: NextBlock<'a>,
}

impl SoundStream<'static> {
    /// Opens a file, whose channels are mixed to one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decoded.
    pub fn open(path: &Path, high_pass: u16) -> anyhow::Result<Self> {
        let mut decoder = Decoder::open(path)?;
        let (sample_rate, scale) = (decoder.sample_rate(), 1.0 / decoder.channels() as f32);
        let mut block = Vec::new();
        let next = move |mono: &mut Vec<f32>| {
            let more = decoder.next(&mut block)?;
            mono.clear();
            if more {
                let sum = |frame: usize| {
                    block
                        .iter()
                        .map(|channel: &Vec<f32>| channel[frame])
                        .sum::<f32>()
                };
                mono.extend((0..block[0].len()).map(|frame| scale * sum(frame)));
            }
            Ok(more)
        };
        Ok(Self {
            name: display_name(path),
            sample_rate,
            high_pass,
            next: Box::new(next),
        })
    }
}

/// Resamples a recording and calls `emit` with its pieces in order, until that returns false. The
/// last piece is padded with silence to whole frames.
///
/// # Errors
/// Returns an error if the sound cannot be read.
pub fn cut(
    mut stream: SoundStream<'_>,
    format: DataFormat,
    mut emit: impl FnMut(Piece) -> bool,
) -> anyhow::Result<()> {
    let cut = Cut::new(format);
    let hop = format.rate.hop;
    let resampler = StreamResampler::new(stream.sample_rate, format.rate.sample_rate);
    let mut resampler = resampler.with_context(|| stream.name.clone())?;
    let mut ahead = resampler.latency();
    // Sound from the frame `start`, as far as a piece still needs it.
    let (mut sound, mut start, mut first_frame) = (Vec::<f32>::new(), 0, 0);
    let rumble = f64::from(stream.high_pass);
    let mut high_pass = (rumble > 0.0).then(|| Biquad::high_pass(rumble, format.rate.sample_rate));
    let mut mono = Vec::new();
    loop {
        let more = (stream.next)(&mut mono)?;
        let mut collect = |samples: &[f32]| {
            let dropped = ahead.min(samples.len());
            ahead -= dropped;
            let from = sound.len();
            sound.extend_from_slice(&samples[dropped..]);
            high_pass
                .iter_mut()
                .for_each(|filter| filter.process(&mut sound[from..]));
        };
        if more {
            resampler.push(&mono, &mut collect);
        } else {
            resampler.finish(&mut collect);
            sound.resize(sound.len().next_multiple_of(hop), 0.0);
        }
        while sound.len() >= (first_frame + cut.frames - start) * hop + cut.tail {
            if !emit(cut.piece(&sound, start, first_frame, cut.frames, false)) {
                return Ok(());
            }
            first_frame += cut.frames;
            let keep_from = first_frame.saturating_sub(cut.lead_frames).max(start);
            sound.drain(..(keep_from - start) * hop);
            start = keep_from;
        }
        if !more {
            break;
        }
    }
    // What is left is longer than a piece if only its tail was missing.
    let end = start + sound.len() / hop;
    while first_frame < end {
        let frames = cut.frames.min(end - first_frame);
        if !emit(cut.piece(
            &sound,
            start,
            first_frame,
            frames,
            first_frame + frames == end,
        )) {
            return Ok(());
        }
        first_frame += frames;
    }
    Ok(())
}

impl Piece {
    /// Returns the first frame after the piece.
    #[must_use]
    pub fn end(&self) -> usize {
        self.first_frame + self.frames
    }

    /// Analyses the piece.
    #[must_use]
    pub fn analyse(mut self, format: DataFormat) -> AnalysedPiece {
        let hop = format.rate.hop;
        let mut analysis = Analysis::new(f64::from(format.rate.sample_rate), hop);
        let mut frames: Vec<AnalysisFrame> = Vec::with_capacity(self.lead_frames + self.frames);
        analysis.push(&self.samples, |frame| frames.push(frame));
        analysis.push(&vec![0.0; analysis.latency() + hop], |frame| {
            frames.push(frame)
        });
        let first_voiced = frames
            .iter()
            .position(|frame| frame.pitch.voiced)
            .unwrap_or(frames.len());
        let own = &frames[self.lead_frames..][..self.frames];
        let column = |value: fn(&AnalysisFrame) -> f32| own.iter().map(value).collect();
        self.samples
            .truncate((self.lead_frames + self.frames) * hop);
        self.samples.drain(..self.lead_frames * hop);
        AnalysedPiece {
            first_frame: self.first_frame,
            last: self.last,
            row: Row {
                sound: self.samples,
                pitch: column(|frame| frame.pitch.semitones),
                loudness: column(|frame| frame.loudness),
                voiced: column(|frame| f32::from(u8::from(frame.pitch.voiced))),
            },
            holding: first_voiced
                .saturating_sub(self.lead_frames)
                .min(self.frames),
        }
    }
}

impl AnalysedPiece {
    /// Gives unvoiced frames at the start the pitch that the piece before ended with; returns that
    /// of this one's end.
    pub fn hold(&mut self, pitch: Option<f32>) -> Option<f32> {
        if let Some(pitch) = pitch {
            self.row.pitch[..self.holding].fill(pitch);
        }
        self.row.pitch.last().copied()
    }

    /// Splits the piece into rows, each with its first frame.
    pub fn rows(&self, format: DataFormat) -> impl ExactSizeIterator<Item = (usize, Row)> {
        let (length, hop) = (format.row_frames(), format.rate.hop);
        let frames = self.row.pitch.len();
        (0..frames.div_ceil(length)).map(move |index| {
            let range = index * length..frames.min((index + 1) * length);
            let row = Row {
                sound: self.row.sound[range.start * hop..range.end * hop].to_vec(),
                pitch: self.row.pitch[range.clone()].to_vec(),
                loudness: self.row.loudness[range.clone()].to_vec(),
                voiced: self.row.voiced[range.clone()].to_vec(),
            };
            (self.first_frame + range.start, row)
        })
    }
}
