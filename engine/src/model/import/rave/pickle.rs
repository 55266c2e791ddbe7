//! Reader of the part of Python's pickle format that TorchScript archives use. Pickles are read as
//! data: nothing is imported or called; only lists, dictionaries, texts, numbers, tensors and
//! modules with their attributes are built.

use std::rc::Rc;

use super::error::RaveError;
use crate::model::ModelError;

/// Deepest nesting of values.
const DEPTH: u16 = 256;
/// Most values in the memo, far above the need of the largest networks.
const MEMO: usize = 1 << 20;

/// Value of a pickle.
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A floating-point number; no attribute that is read is one.
    Float,
    Text(Rc<str>),
    /// List or tuple.
    List(Rc<Vec<Value>>),
    Dict(Rc<Vec<(Value, Value)>>),
    /// Name of a class or function.
    Global(Rc<str>),
    Storage(Rc<Storage>),
    Tensor(Rc<TensorLocation>),
    Object(Rc<Object>),
    /// Result of a function that is not known, and was not called.
    Unknown,
}

/// Record of an archive that holds tensor values.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    /// Type, such as `torch.FloatStorage`.
    pub kind: Rc<str>,
    /// Name of the record.
    pub key: Rc<str>,
}

/// Location of a tensor's values in the archive.
#[derive(Clone, Debug)]
pub(super) struct TensorLocation {
    pub storage: Rc<Storage>,
    /// Index of the first value.
    pub offset: usize,
    /// Extent of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// Distance between neighbours along each dimension, in values.
    pub stride: Vec<usize>,
}

/// Module: its class and attributes.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Qualified name, such as `__torch__.rave.pqmf.CachedPQMF`.
    pub class: Rc<str>,
    /// Names and values, in the order of the pickle.
    pub attributes: Vec<(Rc<str>, Value)>,
}

/// Value and its nesting depth.
type Nested = (Value, u16);

/// Reads a pickle.
///
/// # Errors
/// Returns [`RaveError::Pickle`] with the offset of the first instruction that cannot be executed.
pub(super) fn read(bytes: &[u8]) -> Result<Value, ModelError> {
    let mut reader = Reader {
        bytes,
        position: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
    };
    loop {
        let offset = reader.position;
        match reader.step() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(reason) => return Err(RaveError::Pickle { offset, reason }.into()),
        }
    }
}

/// Description of a failed instruction; [`read`] adds the offset.
type Reason = String;

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    stack: Vec<Nested>,
    /// Stack heights at which open lists begin.
    marks: Vec<usize>,
    memo: Vec<Option<Nested>>,
}

impl<'a> Reader<'a> {
    /// Executes one instruction; returns the final value at the last one.
    fn step(&mut self) -> Result<Option<Value>, Reason> {
        let opcode = self.take(1)?[0];
        match opcode {
            0x80 if self.take(1)?[0] > 3 => {
                return Err("protocols above 3 are not supported".into());
            }
            0x80 => {}
            b'.' => return Ok(Some(self.pop()?.0)),
            b'(' => self.marks.push(self.stack.len()),
            b'K' | b'M' | b'J' | 0x8a | b'G' | b'X' | b'c' | b'N' | 0x88 | 0x89 => {
                let value = self.scalar(opcode)?;
                self.push(value, 0)?;
            }
            b')' | b']' => self.push(Value::List(Rc::default()), 0)?,
            b'}' => self.push(Value::Dict(Rc::default()), 0)?,
            b't' | 0x85..=0x87 | b'a' | b'e' | b's' | b'u' => self.container(opcode)?,
            b'q' | b'r' | b'h' | b'j' => {
                let key = match opcode {
                    b'q' | b'h' => self.take(1)?[0].into(),
                    _ => u32::from_le_bytes(self.array()?) as usize,
                };
                if matches!(opcode, b'q' | b'r') {
                    self.store(key)?
                } else {
                    self.load(key)?
                }
            }
            b'Q' => {
                let (id, _) = self.pop()?;
                self.push(storage(&id)?, 0)?;
            }
            b'R' => {
                let (arguments, depth) = self.pop()?;
                let (function, _) = self.pop()?;
                self.push(call(&function, &arguments)?, depth + 1)?;
            }
            0x81 => {
                self.pop()?;
                let Value::Global(class) = self.pop()?.0 else {
                    return Err("an object without a class".into());
                };
                self.push(
                    Value::Object(Rc::new(Object {
                        class,
                        attributes: Vec::new(),
                    })),
                    0,
                )?;
            }
            b'b' => self.build()?,
            other => return Err(format!("unknown instruction {other:#04x}")),
        }
        Ok(None)
    }

    /// Reads the operand of an instruction that pushes one value.
    fn scalar(&mut self, opcode: u8) -> Result<Value, Reason> {
        Ok(match opcode {
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'K' => Value::Int(self.take(1)?[0].into()),
            b'M' => Value::Int(u16::from_le_bytes(self.array()?).into()),
            b'J' => Value::Int(i32::from_le_bytes(self.array()?).into()),
            0x8a => Value::Int(self.long()?),
            b'G' => {
                self.take(size_of::<f64>())?;
                Value::Float
            }
            b'X' => {
                let length = u32::from_le_bytes(self.array()?) as usize;
                Value::Text(utf8(self.take(length)?)?.into())
            }
            _ => Value::Global(format!("{}.{}", self.line()?, self.line()?).into()),
        })
    }

    /// Executes an instruction that makes or extends a list or dictionary.
    fn container(&mut self, opcode: u8) -> Result<(), Reason> {
        match opcode {
            b't' => {
                let items = self.pop_to_mark()?;
                self.push_list(items)
            }
            0x85..=0x87 => {
                let first = self
                    .stack
                    .len()
                    .checked_sub(usize::from(opcode) - 0x84)
                    .ok_or(EMPTY_STACK)?;
                let items = self.stack.split_off(first);
                self.push_list(items)
            }
            b'a' => {
                let item = self.pop()?;
                self.extend_list(&[item])
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.extend_list(&items)
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend_dict(&[key, value])
            }
            _ => {
                let items = self.pop_to_mark()?;
                self.extend_dict(&items)
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Reason> {
        let end = self
            .position
            .checked_add(length)
            .filter(|&end| end <= self.bytes.len())
            .ok_or(TRUNCATED)?;
        let bytes = &self.bytes[self.position..end];
        self.position = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        Ok(*self.take(N)?.first_chunk().expect("take returns N bytes"))
    }

    fn line(&mut self) -> Result<&'a str, Reason> {
        let rest = &self.bytes[self.position..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or(TRUNCATED)?;
        self.position += length + 1;
        utf8(&rest[..length])
    }

    /// Reads a little-endian integer of up to eight bytes.
    fn long(&mut self) -> Result<i64, Reason> {
        let length = self.take(1)?[0].into();
        if length > 8 {
            return Err(format!("an integer of {length} bytes is not supported"));
        }
        let bytes = self.take(length)?;
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut extended = [if negative { 0xff } else { 0 }; 8];
        extended[..length].copy_from_slice(bytes);
        Ok(i64::from_le_bytes(extended))
    }

    fn push(&mut self, value: Value, depth: u16) -> Result<(), Reason> {
        if depth > DEPTH {
            return Err(format!("values are nested more than {DEPTH} levels deep"));
        }
        self.stack.push((value, depth));
        Ok(())
    }

    fn pop(&mut self) -> Result<Nested, Reason> {
        Ok(self.stack.pop().ok_or(EMPTY_STACK)?)
    }

    /// Removes all values above the last mark.
    fn pop_to_mark(&mut self) -> Result<Vec<Nested>, Reason> {
        let mark = self
            .marks
            .pop()
            .filter(|&mark| mark <= self.stack.len())
            .ok_or("a list without a beginning")?;
        Ok(self.stack.split_off(mark))
    }

    fn push_list(&mut self, items: Vec<Nested>) -> Result<(), Reason> {
        let depth = deepest(&items) + 1;
        let items = items.into_iter().map(|(value, _)| value).collect();
        self.push(Value::List(Rc::new(items)), depth)
    }

    fn extend_list(&mut self, items: &[Nested]) -> Result<(), Reason> {
        let (Value::List(mut list), depth) = self.pop()? else {
            return Err("items without a list".into());
        };
        let depth = depth.max(deepest(items) + 1);
        Rc::make_mut(&mut list).extend(items.iter().map(|(value, _)| value.clone()));
        self.push(Value::List(list), depth)
    }

    fn extend_dict(&mut self, items: &[Nested]) -> Result<(), Reason> {
        let (Value::Dict(mut dict), depth) = self.pop()? else {
            return Err("items without a dictionary".into());
        };
        if !items.len().is_multiple_of(2) {
            return Err("a key without a value".into());
        }
        let depth = depth.max(deepest(items) + 1);
        let pairs = items
            .chunks_exact(2)
            .map(|pair| (pair[0].0.clone(), pair[1].0.clone()));
        Rc::make_mut(&mut dict).extend(pairs);
        self.push(Value::Dict(dict), depth)
    }

    fn store(&mut self, key: usize) -> Result<(), Reason> {
        if key >= MEMO {
            return Err(format!("the memo holds more than {MEMO} values"));
        }
        if self.memo.len() <= key {
            self.memo.resize(key + 1, None);
        }
        self.memo[key] = Some(self.stack.last().ok_or(EMPTY_STACK)?.clone());
        Ok(())
    }

    fn load(&mut self, key: usize) -> Result<(), Reason> {
        let value = self
            .memo
            .get(key)
            .cloned()
            .flatten()
            .ok_or("a value that is not in the memo")?;
        self.stack.push(value);
        Ok(())
    }

    /// Sets an object's attributes.
    fn build(&mut self) -> Result<(), Reason> {
        let (state, depth) = self.pop()?;
        let (Value::Object(object), _) = self.pop()? else {
            return Err("attributes without an object".into());
        };
        let Value::Dict(pairs) = state else {
            return Err("an object's attributes are no dictionary".into());
        };
        let attributes = pairs.iter().map(|(key, value)| match key {
            Value::Text(name) => Ok((name.clone(), value.clone())),
            _ => Err("an attribute's name is no text"),
        });
        let attributes = attributes.collect::<Result<_, _>>()?;
        self.push(
            Value::Object(Rc::new(Object {
                class: object.class.clone(),
                attributes,
            })),
            depth + 1,
        )
    }
}

const EMPTY_STACK: &str = "the stack is empty";
const TRUNCATED: &str = "it ends too early";

fn utf8(bytes: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

fn deepest(items: &[Nested]) -> u16 {
    items.iter().map(|(_, depth)| *depth).max().unwrap_or(0)
}

/// Reads a persistent id `("storage", kind, key, device, count)`.
fn storage(id: &Value) -> Result<Value, Reason> {
    let Value::List(parts) = id else {
        return Err("a persistent id is no tuple".into());
    };
    match &parts[..] {
        [Value::Text(tag), Value::Global(kind), Value::Text(key), ..] if &**tag == "storage" => {
            Ok(Value::Storage(Rc::new(Storage {
                kind: kind.clone(),
                key: key.clone(),
            })))
        }
        _ => Err("a persistent id is no storage".into()),
    }
}

/// Returns the result of one of the few functions that build data; [`Value::Unknown`] for any
/// other.
fn call(function: &Value, arguments: &Value) -> Result<Value, Reason> {
    let (Value::Global(name), Value::List(arguments)) = (function, arguments) else {
        return Err("a call without a function".into());
    };
    match &**name {
        "torch._utils._rebuild_tensor_v2" => tensor(arguments),
        "collections.OrderedDict" => Ok(Value::Dict(Rc::default())),
        "torch.jit._pickle.restore_type_tag"
        | "torch.jit._pickle.build_intlist"
        | "torch.jit._pickle.build_doublelist"
        | "torch.jit._pickle.build_boollist"
        | "torch.jit._pickle.build_tensorlist" => Ok(arguments
            .first()
            .cloned()
            .ok_or("a call without arguments")?),
        _ => Ok(Value::Unknown),
    }
}

fn tensor(arguments: &[Value]) -> Result<Value, Reason> {
    let [
        Value::Storage(storage),
        Value::Int(offset),
        Value::List(shape),
        Value::List(stride),
        ..,
    ] = arguments
    else {
        return Err("a tensor has other arguments than storage, offset, shape and stride".into());
    };
    let count = |value: &Value| match value {
        Value::Int(value) => {
            usize::try_from(*value).map_err(|_| format!("a tensor has an extent of {value}"))
        }
        _ => Err("a tensor has an extent that is no integer".into()),
    };
    let counts = |values: &[Value]| {
        values
            .iter()
            .map(count)
            .collect::<Result<Vec<usize>, Reason>>()
    };
    let (shape, stride) = (counts(shape)?, counts(stride)?);
    if shape.len() != stride.len() {
        return Err(format!(
            "a tensor has {} extents and {} strides",
            shape.len(),
            stride.len()
        ));
    }
    let offset =
        usize::try_from(*offset).map_err(|_| format!("a tensor has an offset of {offset}"))?;
    Ok(Value::Tensor(Rc::new(TensorLocation {
        storage: storage.clone(),
        offset,
        shape,
        stride,
    })))
}
