//! TorchScript archives written by hand: modules with attributes and sources, as `torch.jit.save` would lay them out. libtorch
//! loads and runs them; whoever reads them without libtorch finds what other archives have.

use std::path::Path;

use ondes_engine::model::Tensor;

use crate::torchscript::archive::Archive;
use crate::torchscript::pickle::Pickle;

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
        self.class = format!("{}.{name}", self.names().0);
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
        let mut pickle = Pickle::default();
        self.write(&mut pickle);
        let mut archive = Archive::of(pickle, "3");
        self.each(&mut |module| {
            let (python, _) = module.names();
            archive.add(&format!("code/{}.py", python.replace('.', "/")), module.source.as_bytes());
        });
        std::fs::write(path, archive.finish()).expect("it can be written");
    }

    /// The Python module of its class, and the class's name there.
    fn names(&self) -> (&str, &str) {
        self.class.rsplit_once('.').expect("a class is in a Python module")
    }

    fn write(&self, pickle: &mut Pickle) {
        let (python, name) = self.names();
        pickle.object(python, name, |pickle| {
            for (name, value) in &self.attributes {
                pickle.text(name);
                match value {
                    Attribute::Parameter(tensor) | Attribute::Buffer(tensor) => {
                        pickle.floats(tensor.shape(), &tensor.floats());
                    }
                    Attribute::Counts(counts) => pickle.counts(counts),
                    Attribute::Int(value) => pickle.int(*value),
                    Attribute::Pair(first, second) => pickle.ints([*first, *second]),
                    Attribute::Bool(value) => pickle.bool(*value),
                    Attribute::Text(text) => pickle.text(text),
                    Attribute::None => pickle.none(),
                    Attribute::Module(module) => module.write(pickle),
                }
            }
        });
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
