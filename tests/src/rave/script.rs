//! Writes TorchScript archives: modules with attributes and sources, laid out as `torch.jit.save`
//! does. libtorch loads and runs them, and the RAVE import reads them.

use std::path::Path;

use ondes_engine::model::Tensor;
use ondes_engine::model::export::torchscript::{Archive, Pickle};

/// Attribute of a module.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// Learnt tensor.
    Parameter(Tensor),
    /// Tensor that is not learnt.
    Buffer(Tensor),
    /// Tensor of integers; one alone is a scalar.
    Counts(Vec<i64>),
    /// Integer.
    Int(i64),
    /// Two integers.
    Pair(i64, i64),
    /// Boolean.
    Bool(bool),
    /// String.
    Text(&'static str),
    /// `None`.
    None,
    /// Child module.
    Module(Module),
}

/// Module with a class of its own, the class's source, and attributes.
#[derive(Clone, Debug)]
pub struct Module {
    /// Python module and name, such as `__torch__.rave.blocks.___torch_mangle_3.Residual`.
    class: String,
    source: String,
    attributes: Vec<(String, Attribute)>,
}

/// Creates modules with unique class names.
#[derive(Debug, Default)]
pub struct Script {
    classes: usize,
}

impl Script {
    /// Creates a module of class `python.___torch_mangle_N.name`. Constants are lines such as
    /// `stride : Final[int] = 4`; a method is `NAME(ARGUMENTS) -> TYPE:` and its body.
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
        let mut attributes: Vec<(String, Attribute)> = attributes
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        attributes.push(("training".into(), Attribute::Bool(false)));
        let quoted = |selected: fn(&Attribute) -> bool| -> String {
            let names = attributes.iter().filter(|(_, value)| selected(value));
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
        constants
            .iter()
            .for_each(|constant| source += &format!("  {constant}\n"));
        for (head, lines) in methods {
            let (name, arguments) = head.split_once('(').expect("a method has arguments");
            source += &format!("  def {name}(self: {class},\n    {arguments}\n");
            lines
                .lines()
                .for_each(|line| source += &format!("    {line}\n"));
        }
        Module {
            class,
            source,
            attributes,
        }
    }
}

impl Module {
    /// Replaces an attribute, or removes it with `None`.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<Attribute>) -> Self {
        let at = self
            .attributes
            .iter()
            .position(|(other, _)| other == name)
            .expect("it has the attribute");
        match value {
            Some(value) => self.attributes[at].1 = value,
            None => drop(self.attributes.remove(at)),
        }
        self
    }

    /// Renames the class without changing its source.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.class = format!("{}.{name}", self.names().0);
        self
    }

    /// Returns the child module with that name.
    ///
    /// # Panics
    /// If there is none.
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
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) {
        let mut pickle = Pickle::default();
        self.write(&mut pickle);
        let mut archive = Archive::new(pickle, "3");
        self.for_each(&mut |module| {
            let (python, _) = module.names();
            archive.add(
                &format!("code/{}.py", python.replace('.', "/")),
                module.source.as_bytes(),
            );
        });
        std::fs::write(path, archive.finish()).expect("it can be written");
    }

    /// Returns the Python module and the name of its class.
    fn names(&self) -> (&str, &str) {
        self.class
            .rsplit_once('.')
            .expect("a class is in a Python module")
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
                    Attribute::Counts(counts) => {
                        let shape = [counts.len()];
                        pickle.integers(if counts.len() == 1 { &[] } else { &shape }, counts);
                    }
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

    fn for_each(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        for (_, value) in &self.attributes {
            if let Attribute::Module(module) = value {
                module.for_each(visit);
            }
        }
    }
}
