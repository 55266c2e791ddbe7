//! The part of Python's pickle format that TorchScript archives use, read as data: nothing is imported, called or built but lists,
//! texts, numbers, tensors and modules with their attributes.

use std::rc::Rc;

use anyhow::{Context, bail, ensure};

/// Deepest nesting of values.
const DEPTH: u16 = 256;
/// Most values that may be remembered, far above what the largest networks need.
const MEMO: usize = 1 << 20;

/// A value of a pickle.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(Rc<str>),
    /// A list or a tuple.
    List(Rc<Vec<Value>>),
    /// A dictionary.
    Dict(Rc<Vec<(Value, Value)>>),
    /// The name of a class or of a function.
    Global(Rc<str>),
    /// What a tensor's values lie in.
    Storage(Rc<Storage>),
    /// A tensor.
    Tensor(Rc<TensorPlace>),
    /// A module.
    Object(Rc<Object>),
    /// Something that is made by calling the function of that name: it is not, so its value is not known.
    Unknown(Rc<str>),
}

/// A record of an archive that holds values.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Its kind, such as `torch.FloatStorage`.
    pub kind: Rc<str>,
    /// Name of the record.
    pub key: Rc<str>,
}

/// Where a tensor's values lie.
#[derive(Clone, Debug)]
pub struct TensorPlace {
    /// The record.
    pub storage: Rc<Storage>,
    /// Its first value.
    pub offset: usize,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Values from one to the next, for each dimension.
    pub stride: Vec<usize>,
}

/// A module: its class and its attributes in their order.
#[derive(Clone, Debug)]
pub struct Object {
    /// Qualified name, such as `__torch__.rave.pqmf.CachedPQMF`.
    pub class: Rc<str>,
    /// Names and values.
    pub attributes: Vec<(Rc<str>, Value)>,
}

/// A value and how deeply it is nested.
type Deep = (Value, u16);

/// Reads a pickle.
///
/// # Errors
/// What is not understood, and at which byte.
pub fn read(bytes: &[u8]) -> anyhow::Result<Value> {
    let mut reader = Reader { bytes, at: 0, stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
    loop {
        let at = reader.at;
        if let Some(value) = reader.step().with_context(|| format!("the pickle at byte {at}"))? {
            return Ok(value);
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Deep>,
    /// Where the lists begin that are being gathered.
    marks: Vec<usize>,
    memo: Vec<Option<Deep>>,
}

impl<'a> Reader<'a> {
    /// Follows one instruction; gives the whole at the last one.
    fn step(&mut self) -> anyhow::Result<Option<Value>> {
        match self.take(1)?[0] {
            0x80 => ensure!(self.take(1)?[0] <= 3, "a protocol newer than 3"),
            b'.' => return Ok(Some(self.pop()?.0)),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.push(Value::None)?,
            0x88 => self.push(Value::Bool(true))?,
            0x89 => self.push(Value::Bool(false))?,
            b'K' => {
                let value = self.take(1)?[0].into();
                self.push(Value::Int(value))?;
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?).into();
                self.push(Value::Int(value))?;
            }
            b'J' => {
                let value = i32::from_le_bytes(self.array()?).into();
                self.push(Value::Int(value))?;
            }
            0x8a => {
                let value = self.long()?;
                self.push(Value::Int(value))?;
            }
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(value))?;
            }
            b'X' => {
                let length = u32::from_le_bytes(self.array()?) as usize;
                let text = std::str::from_utf8(self.take(length)?).context("a text that is no UTF-8")?;
                self.push(Value::Text(text.into()))?;
            }
            b'c' => {
                let name = format!("{}.{}", self.line()?, self.line()?);
                self.push(Value::Global(name.into()))?;
            }
            b')' | b']' => self.push(Value::List(Rc::default()))?,
            b'}' => self.push(Value::Dict(Rc::default()))?,
            b't' => {
                let items = self.gather()?;
                self.push_list(items)?;
            }
            count @ 0x85..=0x87 => {
                let first = self.stack.len().checked_sub(usize::from(count) - 0x84).context("an empty stack")?;
                let items = self.stack.split_off(first);
                self.push_list(items)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.extend_list(vec![item])?;
            }
            b'e' => {
                let items = self.gather()?;
                self.extend_list(items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend_dict(vec![key, value])?;
            }
            b'u' => {
                let items = self.gather()?;
                self.extend_dict(items)?;
            }
            b'q' => {
                let key = self.take(1)?[0].into();
                self.remember(key)?;
            }
            b'r' => {
                let key = u32::from_le_bytes(self.array()?) as usize;
                self.remember(key)?;
            }
            b'h' => {
                let key = self.take(1)?[0].into();
                self.recall(key)?;
            }
            b'j' => {
                let key = u32::from_le_bytes(self.array()?) as usize;
                self.recall(key)?;
            }
            b'Q' => {
                let (id, _) = self.pop()?;
                self.push(storage(&id)?)?;
            }
            b'R' => {
                let (arguments, depth) = self.pop()?;
                let (function, _) = self.pop()?;
                self.push_at(call(&function, &arguments)?, depth + 1)?;
            }
            0x81 => {
                self.pop()?;
                let Value::Global(class) = self.pop()?.0 else { bail!("an object of no class") };
                self.push(Value::Object(Rc::new(Object { class, attributes: Vec::new() })))?;
            }
            b'b' => self.build()?,
            other => bail!("the instruction {other:#04x} is not known"),
        }
        Ok(None)
    }

    fn take(&mut self, length: usize) -> anyhow::Result<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len()).context("it ends too early")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    fn line(&mut self) -> anyhow::Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == b'\n').context("it ends too early")?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).context("a name that is no UTF-8")
    }

    /// A whole number of up to eight bytes.
    fn long(&mut self) -> anyhow::Result<i64> {
        let length = self.take(1)?[0].into();
        ensure!(length <= 8, "a whole number of {length} bytes");
        let bytes = self.take(length)?;
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        whole[..length].copy_from_slice(bytes);
        Ok(i64::from_le_bytes(whole))
    }

    fn push(&mut self, value: Value) -> anyhow::Result<()> {
        self.push_at(value, 0)
    }

    fn push_at(&mut self, value: Value, depth: u16) -> anyhow::Result<()> {
        ensure!(depth <= DEPTH, "values are nested more than {DEPTH} deep");
        self.stack.push((value, depth));
        Ok(())
    }

    fn pop(&mut self) -> anyhow::Result<Deep> {
        self.stack.pop().context("an empty stack")
    }

    /// All values since the last mark.
    fn gather(&mut self) -> anyhow::Result<Vec<Deep>> {
        let mark = self.marks.pop().filter(|&mark| mark <= self.stack.len()).context("a list that never began")?;
        Ok(self.stack.split_off(mark))
    }

    fn push_list(&mut self, items: Vec<Deep>) -> anyhow::Result<()> {
        let depth = deepest(&items) + 1;
        let items = items.into_iter().map(|(value, _)| value).collect();
        self.push_at(Value::List(Rc::new(items)), depth)
    }

    fn extend_list(&mut self, items: Vec<Deep>) -> anyhow::Result<()> {
        let (Value::List(mut list), depth) = self.pop()? else { bail!("items of no list") };
        let depth = depth.max(deepest(&items) + 1);
        Rc::make_mut(&mut list).extend(items.into_iter().map(|(value, _)| value));
        self.push_at(Value::List(list), depth)
    }

    fn extend_dict(&mut self, items: Vec<Deep>) -> anyhow::Result<()> {
        let (Value::Dict(mut dict), depth) = self.pop()? else { bail!("items of no dictionary") };
        ensure!(items.len().is_multiple_of(2), "a key without a value");
        let depth = depth.max(deepest(&items) + 1);
        let pairs = items.chunks_exact(2).map(|pair| (pair[0].0.clone(), pair[1].0.clone()));
        Rc::make_mut(&mut dict).extend(pairs);
        self.push_at(Value::Dict(dict), depth)
    }

    fn remember(&mut self, key: usize) -> anyhow::Result<()> {
        ensure!(key < MEMO, "more than {MEMO} values are remembered");
        if self.memo.len() <= key {
            self.memo.resize(key + 1, None);
        }
        self.memo[key] = Some(self.stack.last().context("an empty stack")?.clone());
        Ok(())
    }

    fn recall(&mut self, key: usize) -> anyhow::Result<()> {
        let value = self.memo.get(key).cloned().flatten().context("a value that was not remembered")?;
        self.stack.push(value);
        Ok(())
    }

    /// Gives an object its attributes.
    fn build(&mut self) -> anyhow::Result<()> {
        let (state, depth) = self.pop()?;
        let (Value::Object(object), _) = self.pop()? else { bail!("attributes of no object") };
        let Value::Dict(pairs) = state else { bail!("an object whose attributes are no dictionary") };
        let attributes = pairs.iter().map(|(key, value)| match key {
            Value::Text(name) => Ok((name.clone(), value.clone())),
            _ => bail!("an attribute whose name is no text"),
        });
        let attributes = attributes.collect::<anyhow::Result<_>>()?;
        self.push_at(Value::Object(Rc::new(Object { class: object.class.clone(), attributes })), depth + 1)
    }
}

fn deepest(items: &[Deep]) -> u16 {
    items.iter().map(|(_, depth)| *depth).max().unwrap_or(0)
}

/// What a persistent id `("storage", kind, key, device, values)` stands for.
fn storage(id: &Value) -> anyhow::Result<Value> {
    let Value::List(parts) = id else { bail!("a persistent id that is no tuple") };
    let [Value::Text(what), Value::Global(kind), Value::Text(key), ..] = &parts[..] else {
        bail!("a persistent id that is no storage")
    };
    ensure!(&**what == "storage", "a persistent id of {what:?}");
    Ok(Value::Storage(Rc::new(Storage { kind: kind.clone(), key: key.clone() })))
}

/// What calling a function would give; those that are known here only say what kind of value is meant.
fn call(function: &Value, arguments: &Value) -> anyhow::Result<Value> {
    let (Value::Global(name), Value::List(arguments)) = (function, arguments) else { bail!("a call of no function") };
    match &**name {
        "torch._utils._rebuild_tensor_v2" => tensor(arguments),
        "collections.OrderedDict" => Ok(Value::Dict(Rc::default())),
        "torch.jit._pickle.restore_type_tag"
        | "torch.jit._pickle.build_intlist"
        | "torch.jit._pickle.build_doublelist"
        | "torch.jit._pickle.build_boollist"
        | "torch.jit._pickle.build_tensorlist" => arguments.first().cloned().context("a call without arguments"),
        _ => Ok(Value::Unknown(name.clone())),
    }
}

fn tensor(arguments: &[Value]) -> anyhow::Result<Value> {
    let [Value::Storage(storage), Value::Int(offset), Value::List(shape), Value::List(stride), ..] = arguments else {
        bail!("a tensor that is not described as tensors are")
    };
    let whole = |values: &[Value]| -> anyhow::Result<Vec<usize>> {
        let whole = |value: &Value| match value {
            Value::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        };
        values.iter().map(whole).collect::<Option<_>>().context("a tensor whose extents are no whole numbers")
    };
    let (shape, stride) = (whole(shape)?, whole(stride)?);
    ensure!(shape.len() == stride.len(), "a tensor of {} extents and {} strides", shape.len(), stride.len());
    let offset = usize::try_from(*offset).context("a tensor that begins before its storage")?;
    Ok(Value::Tensor(Rc::new(TensorPlace { storage: storage.clone(), offset, shape, stride })))
}
