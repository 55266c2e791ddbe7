//! A ZIP archive whose files are stored as they are (APPNOTE 6.3.3, sections 4.3.7, 4.3.12 and 4.3.16).

/// Version of the format that it takes to read it: 1.0.
const VERSION: u16 = 10;

/// An archive in the making.
pub struct Archive {
    folder: &'static str,
    bytes: Vec<u8>,
    directory: Vec<u8>,
    files: u16,
}

impl Archive {
    /// An archive whose files lie in a folder.
    pub fn new(folder: &'static str) -> Self {
        Self { folder, bytes: Vec::new(), directory: Vec::new(), files: 0 }
    }

    /// Adds a file.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        let name = format!("{}/{name}", self.folder);
        let offset = self.bytes.len() as u32;
        let mut facts = Vec::new();
        // No flags, no compression, no time.
        for field in [VERSION, 0, 0, 0, 0] {
            facts.extend(field.to_le_bytes());
        }
        for field in [crc32(content), content.len() as u32, content.len() as u32] {
            facts.extend(field.to_le_bytes());
        }
        facts.extend((name.len() as u16).to_le_bytes());
        facts.extend(0_u16.to_le_bytes());
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&facts);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(content);
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&facts);
        // No comment, the first disk, no attributes.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.files += 1;
    }

    /// The whole.
    pub fn finish(mut self) -> Vec<u8> {
        let offset = self.bytes.len() as u32;
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.files.to_le_bytes());
        self.bytes.extend(self.files.to_le_bytes());
        self.bytes.extend((self.directory.len() as u32).to_le_bytes());
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend(0_u16.to_le_bytes());
        self.bytes
    }
}

/// CRC-32 with the polynomial of IEEE 802.3, reflected.
fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(index as u32, |crc, _| if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 });
    }
    !bytes.iter().fold(u32::MAX, |crc, &byte| table[((crc ^ u32::from(byte)) & 0xFF) as usize] ^ (crc >> 8))
}
