//! WAV files: RIFF, big-endian RIFX, RF64 (EBU Tech 3306), BW64 (ITU-R BS.2088) and Sony Wave64,
//! also those whose recorder crashed before it wrote the lengths.

use std::io::{Read, Seek};

use symphonia::core::io::MediaSource;

use super::{
    Contents, Encoding, Layout, MAX_CHUNKS, Number, Refusal, alignment, number, read_at,
    read_exactly,
};

/// A 32-bit length that is not known, or that a 64-bit chunk gives.
const UNKNOWN: u64 = u32::MAX as u64;
/// Least length that writers to pipes declare if they do not know it; SoX writes 0x7ffff000.
const LEAST_UNKNOWN: u64 = 0x7fff_0000;
/// Longest format chunk that is read, bytes; the longest one in use has 40.
const MAX_FORMAT_BYTES: u64 = 1 << 10;
/// GUID of a Wave64 file, and the end of the GUIDs of its chunks.
const WAVE64: &[u8; 16] = b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00";
const WAVE64_CHUNK: &[u8; 12] = b"\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a";
/// Ends of the GUIDs that stand for format tags, and for those of ambisonic sound.
const FORMAT_GUIDS: [&[u8]; 2] = [
    b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71",
    b"\x00\x00\x21\x07\xd3\x11\x86\x44\xc8\xc1\xca\x00\x00\x00",
];
/// Names of chunks that follow others without the padding that an odd length needs.
const COMMON_CHUNKS: [&[u8; 4]; 10] = [
    b"fmt ", b"data", b"fact", b"LIST", b"JUNK", b"bext", b"PEAK", b"cue ", b"smpl", b"iXML",
];
/// Starts of DTS (16 and 14 bits) and of S/PDIF frames in 16-bit samples.
const BITSTREAMS: [&[u8; 4]; 3] = [
    b"\xfe\x7f\x01\x80",
    b"\xff\x1f\x00\xe8",
    b"\x72\xf8\x1f\x4e",
];
/// Bytes that are searched for such a start.
const BITSTREAM_SEARCH: usize = 1 << 16;

/// Returns whether a file begins as Wave64 does.
pub fn is_wave64(start: &[u8]) -> bool {
    start.len() == 40
        && start.starts_with(WAVE64)
        && start[24..] == [b"wave".as_slice(), WAVE64_CHUNK].concat()
}

/// Kind of container with its length.
struct Container {
    base: u64,
    /// Lengths have 64 bits and include the chunk's header, which has a GUID.
    is_wave64: bool,
    /// A chunk gives the lengths in 64 bits.
    is_rf64: bool,
    big_endian: bool,
    /// Declared length from `base`, bytes.
    length: u64,
}

/// Chunks that matter.
#[derive(Default)]
struct Chunks {
    format: Option<Vec<u8>>,
    /// Number of frames of compressed sound.
    fact: Option<Vec<u8>>,
    /// Position and declared length of the sound, bytes.
    data: Option<(u64, Option<u64>)>,
}

/// Finds the sound of a file that begins at `base` with `start`.
///
/// # Errors
/// The file cannot be read, has no sound, or its samples are not supported.
pub fn contents<S: MediaSource>(
    source: &mut S,
    base: u64,
    start: &[u8],
) -> Result<Contents, Refusal> {
    let is_wave64 = is_wave64(start);
    let big_endian = start.starts_with(b"RIFX");
    let length = if is_wave64 {
        number(&start[16..24], false)
    } else {
        number(&start[4..8], big_endian) + 8
    };
    let is_rf64 = start.starts_with(b"RF64") || start.starts_with(b"BW64");
    let container = Container {
        base,
        is_wave64,
        is_rf64,
        big_endian,
        length,
    };
    let chunks = container.chunks(source)?;
    let format = chunks
        .format
        .ok_or("the WAV file does not describe its sound")?;
    let (start, bytes) = chunks.data.ok_or("the WAV file has no sound")?;
    container.with_format(source, &format, chunks.fact, start, bytes)
}

impl Container {
    fn chunks<S: MediaSource>(&self, source: &mut S) -> Result<Chunks, Refusal> {
        let file_bytes = source.byte_len().unwrap_or(0);
        let (first, name_bytes, size_bytes, alignment) = if self.is_wave64 {
            (40, 16, 8, 8)
        } else {
            (12, 4, 4, 2)
        };
        let header_bytes = name_bytes + size_bytes;
        let (mut chunks, mut long_data) = (Chunks::default(), None);
        let mut position = self.base + first;
        for _ in 0..MAX_CHUNKS {
            let Some(header) = read_exactly(source, position, header_bytes)? else {
                break;
            };
            let start = position + header_bytes as u64;
            let mut size = number(&header[name_bytes..], self.big_endian);
            if self.is_wave64 {
                size = size.saturating_sub(header_bytes as u64);
            }
            match &header[..4] {
                b"ds64" if self.is_rf64 => {
                    long_data = read_exactly(source, start, 16)?
                        .map(|lengths| number(&lengths[8..], false));
                }
                b"fmt " if chunks.format.is_none() => {
                    let mut format = vec![0; size.min(MAX_FORMAT_BYTES) as usize];
                    let length = read_at(source, start, &mut format)?;
                    format.truncate(length);
                    chunks.format = Some(format);
                }
                b"fact" => chunks.fact = read_exactly(source, start, 4)?,
                b"data" if chunks.data.is_none() => {
                    let declared =
                        self.declared(size, long_data, file_bytes.saturating_sub(self.base));
                    chunks.data = Some((start, declared));
                    size = declared.unwrap_or(file_bytes);
                }
                _ => (),
            }
            if chunks.format.is_some() && chunks.data.is_some() {
                break;
            }
            let Some(end) = start.checked_add(size) else {
                break;
            };
            let Some(next) = (end - self.base).checked_next_multiple_of(alignment) else {
                break;
            };
            position = self.base.saturating_add(next);
            if position != end && !self.is_wave64 {
                let follows = read_exactly(source, end, 4)?;
                if follows.is_some_and(|name| {
                    COMMON_CHUNKS
                        .iter()
                        .any(|common| *common == name.as_slice())
                }) {
                    position = end;
                }
            }
        }
        Ok(chunks)
    }

    /// Returns the length of the sound from that of its chunk; `None` if the recorder did not write
    /// it. The file has `available` bytes.
    fn declared(&self, size: u64, long_size: Option<u64>, available: u64) -> Option<u64> {
        match (size, long_size) {
            (UNKNOWN, Some(size)) if self.is_rf64 => Some(size).filter(|&size| size != 0),
            (UNKNOWN, _) if !self.is_wave64 => None,
            (LEAST_UNKNOWN.., _) if !self.is_wave64 && size > available => None,
            // An empty file is complete if its length is right.
            (0, _) => (self.length == available).then_some(0),
            (size, _) => Some(size),
        }
    }

    fn with_format<S: Read + Seek>(
        &self,
        source: &mut S,
        format: &[u8],
        fact: Option<Vec<u8>>,
        start: u64,
        bytes: Option<u64>,
    ) -> Result<Contents, Refusal> {
        let field = |from: usize, length: usize| {
            Some(number(format.get(from..from + length)?, self.big_endian))
        };
        let [
            Some(mut tag),
            Some(channels),
            Some(sample_rate),
            Some(frame_bytes),
        ] = [field(0, 2), field(2, 2), field(4, 4), field(12, 2)]
        else {
            return Err(
                "the WAV file does not describe its sound: its format chunk is too short".into(),
            );
        };
        if tag == 0xfffe
            && let Some(sub_format) = format.get(24..40)
        {
            let Some(_) = FORMAT_GUIDS.iter().find(|guid| sub_format.ends_with(guid)) else {
                return Err(
                    format!("the WAV codec {} is not supported", hexadecimal(sub_format)).into(),
                );
            };
            tag = number(&sub_format[..2], self.big_endian);
        }
        let sample_bytes = frame_bytes.checked_div(channels).unwrap_or(0);
        let bits = field(14, 2)
            .filter(|&bits| bits != 0)
            .unwrap_or(8 * sample_bytes);
        let encoding = Encoding::signed(1, self.big_endian);
        let mut layout = Layout {
            encoding,
            channels: channels as u32,
            sample_rate,
            start,
            bytes,
        };
        layout.encoding = match (tag, bits) {
            // Cool Edit's floats of 16 bits before the point.
            (1, 32) if format.len() == 20 && field(16, 2) == Some(2) && field(18, 2) == Some(1) => {
                Encoding {
                    number: Number::Float {
                        full_scale: 32_768.0,
                    },
                    ..Encoding::float(4, self.big_endian)
                }
            }
            (1 | 0xfffe, 1..=64) => {
                let packed = bits.div_ceil(8);
                // Some writers declare frames of no length, or of one that no number of channels
                // has.
                let is_whole =
                    (packed..=8).contains(&sample_bytes) && sample_bytes * channels == frame_bytes;
                let sample_bytes = if is_whole { sample_bytes } else { packed } as usize;
                alignment::detect(source, layout, sample_bytes, bits as u32)?
            }
            (3, 32 | 64) => Encoding::float(bits as usize / 8, self.big_endian),
            (6, _) => Encoding::byte(Number::ALaw),
            (7, _) => Encoding::byte(Number::MuLaw),
            (1 | 3 | 0xfffe, _) => {
                return Err(format!("WAV samples of {bits} bits are not supported").into());
            }
            // Symphonia reads these behind a plain header.
            (2 | 0x11, _) if !self.big_endian => {
                return Ok(Contents::Compressed {
                    header: plain_header(format, fact, bytes),
                    start,
                    bytes,
                });
            }
            // MPEG audio, which has headers of its own.
            (0x50 | 0x55, _) => {
                return Ok(Contents::Compressed {
                    header: Vec::new(),
                    start,
                    bytes,
                });
            }
            _ => {
                return Err(format!(
                    "the WAV codec 0x{tag:04x}{} is not supported",
                    codec_name(tag)
                )
                .into());
            }
        };
        if layout.encoding.bytes == 1 && matches!(layout.encoding.number, Number::Signed { .. }) {
            layout.encoding.number = Number::Unsigned;
        }
        if layout.encoding == Encoding::signed(2, false) && channels == 2 {
            check_bitstream(source, layout)?;
        }
        Ok(Contents::Pcm(layout))
    }
}

/// Encodes a header without anything that is not needed.
fn plain_header(format: &[u8], fact: Option<Vec<u8>>, bytes: Option<u64>) -> Vec<u8> {
    let mut header = b"RIFF\xff\xff\xff\xffWAVE".to_vec();
    let mut chunk = |name: &[u8; 4], length: u64, content: &[u8]| {
        header.extend_from_slice(name);
        header.extend_from_slice(&(length.min(UNKNOWN) as u32).to_le_bytes());
        header.extend_from_slice(content);
    };
    chunk(b"fmt ", format.len() as u64, format);
    if let Some(fact) = fact {
        chunk(b"fact", fact.len() as u64, &fact);
    }
    chunk(b"data", bytes.unwrap_or(UNKNOWN), &[]);
    header
}

/// Refuses compressed sound that is made to look like samples, for players that pass it on to a
/// receiver; as samples it is noise at full scale.
fn check_bitstream<S: Read + Seek>(source: &mut S, layout: Layout) -> Result<(), Refusal> {
    let mut buffer = vec![0; BITSTREAM_SEARCH];
    let length = read_at(source, layout.start, &mut buffer)?;
    // Silence may precede the first frame.
    let first = buffer[..length]
        .chunks_exact(4)
        .find(|frame| **frame != [0; 4]);
    match first.is_some_and(|frame| BITSTREAMS.iter().any(|start| *start == frame)) {
        true => Err("the WAV file holds DTS or S/PDIF frames, not samples; decode it first".into()),
        false => Ok(()),
    }
}

fn codec_name(tag: u64) -> &'static str {
    match tag {
        0x31 => " (GSM 6.10)",
        0x40 | 0x45 | 0x64 => " (G.72x)",
        0x92 | 0x2000 => " (AC-3)",
        0xff | 0x1610 | 0x706d => " (AAC)",
        0x160..=0x163 => " (WMA)",
        0x674f..=0x6771 => " (Vorbis)",
        0x2001 => " (DTS)",
        _ => "",
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
