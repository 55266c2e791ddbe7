//! TorchScript archives written by hand: modules with attributes and sources, as `torch.jit.save` would lay them out. libtorch
//! loads and runs them; whoever reads them without libtorch finds what other archives have.

use std::io::Write as _;
use std::path::Path;

use ondes_engine::model::Tensor;
use zip::CompressionMethod;
use zip::write::{FileOptions, ZipWriter};

/// What a module has.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// A tensor that is learnt.
    Parameter(Tensor),
    /// Another tensor.
    Buffer(Tensor),
    /// A tensor of whole numbers.
    Counts(Vec<i64>),
    /// A whole number.
    Int(i64),
    /// Two whole numbers.
    Pair(i64, i64),
    /// True or false.
    Bool(bool),
    /// A text.
    Text(&'static str),
    /// Nothing.
    None,
    /// Another module.
    Module(Module),
}

/// A module: its class, which nobody else has, with its source, and its attributes.
#[derive(Clone, Debug)]
pub struct Module {
    /// Python module and name, such as `__torch__.rave.blocks.___torch_mangle_3.Residual`.
    class: String,
    source: String,
    attributes: Vec<(String, Attribute)>,
}

/// Makes modules.
#[derive(Debug, Default)]
pub struct Script {
    classes: usize,
}

impl Script {
    /// A module of a class `python.___torch_mangle_N.name` with the given constants (`stride : Final[int] = 4`) and methods, each
    /// `NAME(ARGUMENTS) -> TYPE:` and its lines.
    pub fn module(
        &mut self,
        python: &str,
        name: &str,
        attributes: Vec<(&str, Attribute)>,
        constants: &[String],
        methods: &[(&str, &str)],
    ) -> Module {
        self.classes += 1;
        let class = format!("__torch__.{python}.___torch_mangle_{}.{name}", self.classes);
        let mut attributes: Vec<(String, Attribute)> =
            attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        attributes.push(("training".into(), Attribute::Bool(false)));
        let quoted = |wanted: fn(&Attribute) -> bool| -> String {
            let names = attributes.iter().filter(|(_, value)| wanted(value));
            names.map(|(name, _)| format!("\"{name}\", ")).collect()
        };
        let mut source = format!(
            "class {name}(Module):\n  __parameters__ = [{}]\n  __buffers__ = [{}]\n",
            quoted(|value| matches!(value, Attribute::Parameter(_))),
            quoted(|value| matches!(value, Attribute::Buffer(_) | Attribute::Counts(_))),
        );
        for (name, value) in &attributes {
            let kind = match value {
                Attribute::Parameter(_) | Attribute::Buffer(_) | Attribute::Counts(_) => "Tensor",
                Attribute::Int(_) => "int",
                Attribute::Pair(..) => "Tuple[int, int]",
                Attribute::Bool(_) => "bool",
                Attribute::Text(_) => "str",
                Attribute::None => "NoneType",
                Attribute::Module(module) => &module.class,
            };
            source += &if name.starts_with(|first: char| first.is_ascii_digit()) {
                format!("  __annotations__[\"{name}\"] = {kind}\n")
            } else {
                format!("  {name} : {kind}\n")
            };
        }
        constants.iter().for_each(|constant| source += &format!("  {constant}\n"));
        for (head, lines) in methods {
            let (name, arguments) = head.split_once('(').expect("a method has arguments");
            source += &format!("  def {name}(self: {class},\n    {arguments}\n");
            lines.lines().for_each(|line| source += &format!("    {line}\n"));
        }
        Module { class, source, attributes }
    }
}

impl Module {
    /// The same without an attribute, or with another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<Attribute>) -> Self {
        let at = self.attributes.iter().position(|(other, _)| other == name).expect("it has the attribute");
        match value {
            Some(value) => self.attributes[at].1 = value,
            None => drop(self.attributes.remove(at)),
        }
        self
    }

    /// The same under another name of its class; its source is not changed.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        let python = self.class.rsplit_once('.').expect("a class is in a Python module").0;
        self.class = format!("{python}.{name}");
        self
    }

    /// The module in it of that name.
    ///
    /// # Panics
    /// When there is none.
    pub fn child(&mut self, name: &str) -> &mut Self {
        let found = self.attributes.iter_mut().find(|(other, _)| other == name);
        match found.map(|(_, value)| value) {
            Some(Attribute::Module(module)) => module,
            _ => panic!("no module {name:?}"),
        }
    }

    /// Writes the archive.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) {
        let mut zip = ZipWriter::new(std::fs::File::create(path).expect("it can be written"));
        let options = FileOptions::default().compression_method(CompressionMethod::Stored).large_file(false);
        let mut record = |name: &str, bytes: &[u8]| {
            zip.start_file(format!("model/{name}"), options).expect("it can be written");
            zip.write_all(bytes).expect("it can be written");
        };
        let mut pickle = Pickle { bytes: vec![0x80, 2], tensors: Vec::new() };
        pickle.module(self);
        pickle.bytes.push(b'.');
        record("data.pkl", &pickle.bytes);
        for (key, bytes) in pickle.tensors.iter().enumerate() {
            record(&format!("data/{key}"), bytes);
        }
        self.each(&mut |module| {
            let (python, _) = module.class.rsplit_once('.').expect("a class is in a Python module");
            record(&format!("code/{}.py", python.replace('.', "/")), module.source.as_bytes());
        });
        record("constants.pkl", &[0x80, 2, b')', b'.']);
        record("version", b"3\n");
        zip.finish().expect("it can be written");
    }

    fn each(&self, deed: &mut impl FnMut(&Self)) {
        deed(self);
        for (_, value) in &self.attributes {
            if let Attribute::Module(module) = value {
                module.each(deed);
            }
        }
    }
}

struct Pickle {
    bytes: Vec<u8>,
    /// Records of values.
    tensors: Vec<Vec<u8>>,
}

impl Pickle {
    fn global(&mut self, python: &str, name: &str) {
        self.bytes.extend(format!("c{python}\n{name}\n").bytes());
    }

    fn text(&mut self, text: &str) {
        self.bytes.push(b'X');
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.bytes());
    }

    fn int(&mut self, value: i64) {
        self.bytes.push(b'J');
        self.bytes.extend(i32::try_from(value).expect("small numbers").to_le_bytes());
    }

    fn ints(&mut self, values: &[usize]) {
        self.bytes.push(b'(');
        values.iter().for_each(|&value| self.int(value as i64));
        self.bytes.push(b't');
    }

    fn module(&mut self, module: &Module) {
        let (python, name) = module.class.rsplit_once('.').expect("a class is in a Python module");
        self.global(python, name);
        self.bytes.extend(b")\x81}(");
        for (name, value) in &module.attributes {
            self.text(name);
            match value {
                Attribute::Parameter(tensor) | Attribute::Buffer(tensor) => {
                    let bytes = tensor.floats().iter().flat_map(|value| value.to_le_bytes()).collect();
                    self.tensor("FloatStorage", tensor.shape(), bytes);
                }
                Attribute::Counts(counts) => {
                    let bytes = counts.iter().flat_map(|value| value.to_le_bytes()).collect();
                    let shape = if counts.len() == 1 { vec![] } else { vec![counts.len()] };
                    self.tensor("LongStorage", &shape, bytes);
                }
                Attribute::Int(value) => self.int(*value),
                Attribute::Pair(first, second) => {
                    self.bytes.push(b'(');
                    self.int(*first);
                    self.int(*second);
                    self.bytes.push(b't');
                }
                Attribute::Bool(value) => self.bytes.push(if *value { 0x88 } else { 0x89 }),
                Attribute::Text(text) => self.text(text),
                Attribute::None => self.bytes.push(b'N'),
                Attribute::Module(module) => self.module(module),
            }
        }
        self.bytes.extend(b"ub");
    }

    fn tensor(&mut self, kind: &str, shape: &[usize], bytes: Vec<u8>) {
        let mut stride = vec![1; shape.len()];
        for at in (1..shape.len()).rev() {
            stride[at - 1] = stride[at] * shape[at].max(1);
        }
        self.global("torch._utils", "_rebuild_tensor_v2");
        self.bytes.extend(b"((");
        self.text("storage");
        self.global("torch", kind);
        self.text(&self.tensors.len().to_string());
        self.text("cpu");
        self.int(shape.iter().product::<usize>() as i64);
        self.bytes.extend(b"tQ");
        self.int(0);
        self.ints(shape);
        self.ints(&stride);
        self.bytes.push(0x89);
        self.global("collections", "OrderedDict");
        self.bytes.extend(b")RtR");
        self.tensors.push(bytes);
    }
}
