//! Writes TorchScript files without Python or libtorch.
//!
//! [`Class`] builds a module from attributes and TorchScript sources; [`Archive`] and [`Pickle`]
//! lay it out as `torch.jit.save` does.

mod archive;
mod pickle;

pub use archive::Archive;
pub use pickle::Pickle;

/// Attribute of a module.
#[derive(Clone, Debug)]
pub enum Value {
    /// Buffer: shape and values.
    Buffer(Vec<usize>, Vec<f32>),
    /// Buffer of 64-bit floats: shape and values.
    Doubles(Vec<usize>, Vec<f64>),
    /// Buffer of integers: shape and values.
    Integers(Vec<usize>, Vec<i64>),
    /// Weight: shape and values.
    Weight(Vec<usize>, Vec<f32>),
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `float`
    Float(f64),
    /// `str`
    Text(String),
    /// `List[str]`
    Texts(Vec<String>),
}

impl Value {
    fn write(&self, pickle: &mut Pickle) {
        match self {
            Self::Buffer(shape, values) | Self::Weight(shape, values) => {
                pickle.floats(shape, values)
            }
            Self::Doubles(shape, values) => pickle.doubles(shape, values),
            Self::Integers(shape, values) => pickle.integers(shape, values),
            Self::Bool(value) => pickle.bool(*value),
            Self::Int(value) => pickle.int(*value),
            Self::Float(value) => pickle.float(*value),
            Self::Text(text) => pickle.text(text),
            Self::Texts(texts) => pickle.texts(texts),
        }
    }

    fn is_buffer(&self) -> bool {
        matches!(
            self,
            Self::Buffer(..) | Self::Doubles(..) | Self::Integers(..)
        )
    }

    /// Returns the TorchScript type.
    fn annotation(&self) -> &'static str {
        match self {
            Self::Buffer(..) | Self::Doubles(..) | Self::Integers(..) | Self::Weight(..) => {
                "Tensor"
            }
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::Texts(_) => "List[str]",
        }
    }
}

/// Builder of a module.
#[derive(Clone, Debug, Default)]
pub struct Class {
    attributes: Vec<(String, Value)>,
    methods: Vec<String>,
    files: Vec<(String, String)>,
}

impl Class {
    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.attributes.push((name.into(), value));
        self
    }

    /// Adds a method in TorchScript: `signature` without `self`, such as
    /// `forward(x: Tensor) -> Tensor`; `body` line by line.
    #[must_use]
    pub fn method(mut self, signature: &str, body: &[&str]) -> Self {
        let (name, rest) = signature
            .split_once('(')
            .unwrap_or((signature, ") -> Tensor"));
        let rest = if rest.starts_with(')') {
            rest.to_owned()
        } else {
            format!(", {rest}")
        };
        let lines: String = body.iter().map(|line| format!("    {line}\n")).collect();
        self.methods.push(format!(
            "  def {name}(self: __torch__.Model{rest}:\n{lines}"
        ));
        self
    }

    /// Adds a method of nn~ with its channels and ratios:
    /// `[channels in, ratio in, channels out, ratio out]`.
    #[must_use]
    pub fn nn(self, name: &str, parameters: [u32; 4], body: &[&str]) -> Self {
        self.with(
            &format!("{name}_params"),
            Value::Integers(vec![4], parameters.map(i64::from).to_vec()),
        )
        .method(&format!("{name}(x: Tensor) -> Tensor"), body)
    }

    /// Removes a method of nn~.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.attributes
            .retain(|(attribute, _)| *attribute != format!("{name}_params"));
        self.methods
            .retain(|method| !method.starts_with(&format!("  def {name}(")));
        self
    }

    /// Adds an extra file, which `torch.jit.load` returns on request.
    #[must_use]
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.files.push((name.into(), content.into()));
        self
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut pickle = Pickle::default();
        let training = ("training".to_owned(), Value::Bool(false));
        let attributes: Vec<&(String, Value)> =
            std::iter::once(&training).chain(&self.attributes).collect();
        pickle.object("__torch__", "Model", |pickle| {
            for (name, value) in &attributes {
                pickle.text(name);
                value.write(pickle);
            }
        });
        let mut archive = Archive::new(pickle, "10");
        archive.add("code/__torch__.py", self.code(&attributes).as_bytes());
        archive.add("byteorder", b"little");
        for (name, content) in &self.files {
            archive.add(&format!("extra/{name}"), content.as_bytes());
        }
        archive.finish()
    }

    /// Returns the TorchScript source of the class.
    fn code(&self, attributes: &[&(String, Value)]) -> String {
        let names = |selected: fn(&Value) -> bool| -> String {
            attributes
                .iter()
                .filter(|(_, value)| selected(value))
                .map(|(name, _)| format!("{name:?}, "))
                .collect()
        };
        let weights = names(|value| matches!(value, Value::Weight(..)));
        let buffers = names(Value::is_buffer);
        let fields: String = attributes
            .iter()
            .map(|(name, value)| format!("  {name} : {}\n", value.annotation()))
            .collect();
        let methods = self.methods.concat();
        format!(
            "class Model(Module):\n  __parameters__ = [{weights}]\n  __buffers__ = [{buffers}]\n{fields}{methods}"
        )
    }
}
