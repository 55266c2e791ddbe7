//! WAV files that Symphonia does not read: RF64 (EBU Tech 3306) and BW64 (ITU-R BS.2088), Sony Wave64, and those whose
//! recorder crashed before it wrote the lengths.

use std::io::{self, Read, Seek, SeekFrom};

use symphonia::core::io::MediaSource;

/// A 32-bit length that is not known, or that a 64-bit chunk gives.
const UNKNOWN: u64 = u32::MAX as u64;
/// Longest format chunk, bytes; the longest one in use has 40.
const MAX_FORMAT_BYTES: u64 = 1 << 10;
/// Most chunks before the sound.
const MAX_CHUNKS: usize = 1_000;
/// GUID of a Wave64 file, and the end of the GUIDs of its chunks.
const WAVE64: &[u8; 16] = b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00";
const WAVE64_CHUNK: &[u8; 12] = b"\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a";

/// Sound of a WAV file behind a plain header with the lengths that it really has.
pub(super) struct WaveSource<S> {
    header: Vec<u8>,
    source: S,
    /// Position of the sound in the source, bytes.
    data_start: u64,
    /// Length of the sound, bytes.
    data_bytes: u64,
    position: u64,
}

/// Layout of a WAV file.
struct Layout {
    /// Content of the format chunk.
    format: Vec<u8>,
    data_start: u64,
    /// Length of the sound as the file declares it, bytes; `None` for all that follows.
    declared: Option<u64>,
    /// Symphonia reads the file as it is.
    is_plain: bool,
}

/// Returns a source that Symphonia reads, and the number of frames that the file declares, if it was not plain.
///
/// # Errors
/// Returns the errors of the source.
pub(super) fn present<S: MediaSource + 'static>(mut source: S) -> io::Result<(Box<dyn MediaSource>, Option<u64>)> {
    let layout = Container::detect(&mut source)?.map(|container| container.layout(&mut source)).transpose()?.flatten();
    let Some(Layout { format, data_start, declared, .. }) = layout.filter(|layout| !layout.is_plain) else {
        source.rewind()?;
        return Ok((Box::new(source), None));
    };
    let available = source.byte_len().unwrap_or(0).saturating_sub(data_start);
    let data_bytes = declared.unwrap_or(available).min(available);
    let frame_bytes = format.get(12..14).map_or(0, |bytes| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    // Formats of whole samples: integers, floats, and either in the extensible form.
    let has_frames = matches!(format[..2], [1 | 3, 0] | [0xfe, 0xff]);
    let frames = declared.and_then(|bytes| bytes.checked_div(frame_bytes)).filter(|_| has_frames);
    let mut header = b"RIFF\xff\xff\xff\xffWAVEfmt ".to_vec();
    header.extend_from_slice(&(format.len() as u32).to_le_bytes());
    header.extend_from_slice(&format);
    header.extend_from_slice(b"data");
    header.extend_from_slice(&(data_bytes.min(UNKNOWN) as u32).to_le_bytes());
    source.seek(SeekFrom::Start(data_start))?;
    Ok((Box::new(WaveSource { header, source, data_start, data_bytes, position: 0 }), frames))
}

/// Kind of container with its lengths.
struct Container {
    /// Lengths have 64 bits and include the chunk's header, which has a GUID.
    is_wave64: bool,
    /// A chunk gives the lengths in 64 bits.
    is_rf64: bool,
    /// Length of everything, bytes.
    length: u64,
}

impl Container {
    /// Detects a WAV file of any kind.
    fn detect(source: &mut impl Read) -> io::Result<Option<Self>> {
        let mut start = Vec::new();
        source.take(40).read_to_end(&mut start)?;
        let is_wave64 = start.len() == 40
            && start.starts_with(WAVE64)
            && start[24..] == [b"wave".as_slice(), WAVE64_CHUNK].concat();
        if is_wave64 {
            return Ok(Some(Self { is_wave64, is_rf64: false, length: number(&start[16..24]) }));
        }
        let Some((start, _)) = start.split_first_chunk::<12>() else { return Ok(None) };
        let is_rf64 = start.starts_with(b"RF64") || start.starts_with(b"BW64");
        let is_wave = (is_rf64 || start.starts_with(b"RIFF")) && start.ends_with(b"WAVE");
        Ok(is_wave.then(|| Self { is_wave64, is_rf64, length: number(&start[4..8]) }))
    }

    /// Returns where the sound is; `None` if there is none or no format before it.
    fn layout<S: MediaSource>(&self, source: &mut S) -> io::Result<Option<Layout>> {
        let file_bytes = source.byte_len().unwrap_or(0);
        let (mut position, name_bytes, size_bytes) = if self.is_wave64 { (40, 16, 8) } else { (12, 4, 4) };
        let header_bytes = name_bytes + size_bytes;
        let (mut format, mut long_data) = (None, None);
        for _ in 0..MAX_CHUNKS {
            source.seek(SeekFrom::Start(position))?;
            let mut header = Vec::new();
            source.take(header_bytes).read_to_end(&mut header)?;
            if header.len() as u64 != header_bytes {
                return Ok(None);
            }
            let start = position + header_bytes;
            let (name, size) = header.split_at(name_bytes as usize);
            let mut size = number(size);
            if self.is_wave64 {
                size = size.saturating_sub(header_bytes);
            }
            match &name[..4] {
                b"ds64" if self.is_rf64 => {
                    let mut lengths = Vec::new();
                    source.take(16).read_to_end(&mut lengths)?;
                    long_data = lengths.get(8..16).map(number);
                }
                b"fmt " if (14..=MAX_FORMAT_BYTES).contains(&size) => {
                    let mut content = Vec::new();
                    source.take(size).read_to_end(&mut content)?;
                    format = Some(content).filter(|content| content.len() as u64 == size);
                }
                b"data" => {
                    let Some(format) = format else { return Ok(None) };
                    let declared = self.declared(size, long_data, file_bytes);
                    let is_riff = !(self.is_wave64 || self.is_rf64);
                    let fits = |bytes| self.length == UNKNOWN || start.saturating_add(bytes) <= self.length + 8;
                    let is_plain = is_riff && declared.is_some_and(fits);
                    return Ok(Some(Layout { format, data_start: start, declared, is_plain }));
                }
                _ => (),
            }
            let alignment = if self.is_wave64 { 8 } else { 2 };
            let Some(next) = start.checked_add(size).and_then(|end| end.checked_next_multiple_of(alignment)) else {
                return Ok(None);
            };
            position = next;
        }
        Ok(None)
    }

    /// Returns the length of the sound from that of its chunk; `None` if the recorder did not write it.
    fn declared(&self, size: u64, long_size: Option<u64>, file_bytes: u64) -> Option<u64> {
        let whole = if self.is_wave64 { self.length } else { self.length + 8 };
        match (size, long_size) {
            (UNKNOWN, Some(size)) if self.is_rf64 => Some(size).filter(|&size| size != 0),
            (UNKNOWN, _) if !self.is_wave64 => None,
            // An empty file is complete if its length is right.
            (0, _) => (whole == file_bytes).then_some(0),
            (size, _) => Some(size),
        }
    }
}

/// Decodes a little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl<S: MediaSource> Read for WaveSource<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.header.get(self.position as usize..) {
            Some(mut header) if !header.is_empty() => header.read(buffer)?,
            _ => {
                let left = (self.header.len() as u64 + self.data_bytes).saturating_sub(self.position);
                (&mut self.source).take(left).read(buffer)?
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl<S: MediaSource> Seek for WaveSource<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let header = self.header.len() as u64;
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(distance) => (header + self.data_bytes).checked_add_signed(distance),
        };
        let position = position.ok_or(io::ErrorKind::InvalidInput)?;
        self.source.seek(SeekFrom::Start(self.data_start.saturating_add(position.saturating_sub(header))))?;
        self.position = position;
        Ok(position)
    }
}

impl<S: MediaSource> MediaSource for WaveSource<S> {
    fn is_seekable(&self) -> bool {
        self.source.is_seekable()
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.header.len() as u64 + self.data_bytes)
    }
}
