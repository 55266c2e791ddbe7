//! Writer for Python's pickle, protocol 2, as far as TorchScript modules need it; opcodes are named
//! as in `pickletools`.

const PROTO_2: &[u8] = b"\x80\x02";
const MARK: u8 = b'(';
const STOP: u8 = b'.';
const BININT: u8 = b'J';
const BINFLOAT: u8 = b'G';
const BINUNICODE: u8 = b'X';
const NEWTRUE: u8 = 0x88;
const NEWFALSE: u8 = 0x89;
const NONE: u8 = b'N';
const EMPTY_LIST: u8 = b']';
const APPENDS: u8 = b'e';
const EMPTY_DICT: u8 = b'}';
const SETITEMS: u8 = b'u';
const EMPTY_TUPLE: u8 = b')';
const TUPLE: u8 = b't';
const GLOBAL: u8 = b'c';
const REDUCE: u8 = b'R';
const NEWOBJ: u8 = 0x81;
const BUILD: u8 = b'b';
const BINPERSID: u8 = b'Q';

/// Pickle that is being written, and the storages of its tensors.
pub struct Pickle {
    bytes: Vec<u8>,
    storages: Vec<Vec<u8>>,
}

impl Default for Pickle {
    fn default() -> Self {
        Self {
            bytes: PROTO_2.to_vec(),
            storages: Vec::new(),
        }
    }
}

impl Pickle {
    /// Returns a pickle of `()`.
    #[must_use]
    pub fn empty_tuple() -> Vec<u8> {
        [PROTO_2, &[EMPTY_TUPLE, STOP]].concat()
    }

    /// Returns the pickle and the bytes of each tensor.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, Vec<Vec<u8>>) {
        self.bytes.push(STOP);
        (self.bytes, self.storages)
    }

    /// Writes an object; `fields` writes its attributes, alternating names and values.
    pub fn object(&mut self, module: &str, class: &str, fields: impl FnOnce(&mut Self)) {
        self.global(module, class);
        self.bytes.extend([EMPTY_TUPLE, NEWOBJ, EMPTY_DICT, MARK]);
        fields(self);
        self.bytes.extend([SETITEMS, BUILD]);
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        self.bytes.push(BINUNICODE);
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }

    /// Writes a 32-bit integer.
    ///
    /// # Panics
    /// If the value has more bits.
    pub fn int(&mut self, value: i64) {
        self.bytes.push(BININT);
        self.bytes
            .extend(i32::try_from(value).expect("small numbers").to_le_bytes());
    }

    /// Writes a tuple of integers.
    pub fn ints(&mut self, values: impl IntoIterator<Item = i64>) {
        self.bytes.push(MARK);
        values.into_iter().for_each(|value| self.int(value));
        self.bytes.push(TUPLE);
    }

    /// Writes a float.
    pub fn float(&mut self, value: f64) {
        self.bytes.push(BINFLOAT);
        self.bytes.extend(value.to_be_bytes());
    }

    /// Writes a boolean.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(if value { NEWTRUE } else { NEWFALSE });
    }

    /// Writes `None`.
    pub fn none(&mut self) {
        self.bytes.push(NONE);
    }

    /// Writes a list of strings.
    pub fn texts(&mut self, texts: &[String]) {
        self.global("torch.jit._pickle", "restore_type_tag");
        self.bytes.extend([MARK, EMPTY_LIST, MARK]);
        texts.iter().for_each(|text| self.text(text));
        self.bytes.push(APPENDS);
        self.text("List[str]");
        self.bytes.extend([TUPLE, REDUCE]);
    }

    /// Writes a tensor of floats.
    ///
    /// # Panics
    /// If the number of values is not the product of the shape.
    pub fn floats(&mut self, shape: &[usize], values: &[f32]) {
        assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "shape and values must agree"
        );
        self.tensor(
            "FloatStorage",
            shape,
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        );
    }

    /// Writes a tensor of 64-bit floats.
    ///
    /// # Panics
    /// If the number of values is not the product of the shape.
    pub fn doubles(&mut self, shape: &[usize], values: &[f64]) {
        assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "shape and values must agree"
        );
        self.tensor(
            "DoubleStorage",
            shape,
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        );
    }

    /// Writes a tensor of integers.
    ///
    /// # Panics
    /// If the number of values is not the product of the shape.
    pub fn integers(&mut self, shape: &[usize], values: &[i64]) {
        assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "shape and values must agree"
        );
        self.tensor(
            "LongStorage",
            shape,
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        );
    }

    fn global(&mut self, module: &str, name: &str) {
        self.bytes.push(GLOBAL);
        self.bytes.extend(format!("{module}\n{name}\n").as_bytes());
    }

    fn tensor(&mut self, kind: &str, shape: &[usize], bytes: Vec<u8>) {
        self.global("torch._utils", "_rebuild_tensor_v2");
        self.bytes.extend([MARK, MARK]);
        self.text("storage");
        self.global("torch", kind);
        self.text(&self.storages.len().to_string());
        self.text("cpu");
        self.int(shape.iter().product::<usize>() as i64);
        self.bytes.extend([TUPLE, BINPERSID]);
        self.storages.push(bytes);
        self.int(0);
        self.ints(shape.iter().map(|&extent| extent as i64));
        self.ints((1..=shape.len()).map(|from| shape[from..].iter().product::<usize>() as i64));
        self.bool(false);
        self.global("collections", "OrderedDict");
        self.bytes.extend([EMPTY_TUPLE, REDUCE, TUPLE, REDUCE]);
    }
}
