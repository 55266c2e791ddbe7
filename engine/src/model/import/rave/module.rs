//! A module of an archive with its place in it, so that whatever is wrong can be named.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, anyhow, bail};

use super::archive::{Archive, Array};
use super::constants::{self, Constants};
use super::pickle::{self, Object, Value};

/// An archive whose tree of modules was read.
pub struct TorchFile {
    archive: Archive,
    root: Rc<Object>,
    /// By class.
    constants: RefCell<HashMap<Rc<str>, Rc<Constants>>>,
}

impl TorchFile {
    /// Opens a TorchScript archive.
    ///
    /// # Errors
    /// When the file cannot be read, is no such archive, or its pickle is not understood.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let archive = Archive::open(path)?;
        let Value::Object(root) = pickle::read(&archive.pickle()?)? else { bail!("its pickle holds no module") };
        Ok(Self { archive, root, constants: RefCell::default() })
    }

    /// The module that holds all others.
    #[must_use]
    pub fn root(&self) -> Module<'_> {
        Module { file: self, object: self.root.clone(), path: String::new() }
    }

    fn constants(&self, class: &Rc<str>) -> anyhow::Result<Rc<Constants>> {
        if let Some(known) = self.constants.borrow().get(class) {
            return Ok(known.clone());
        }
        let (module, name) = class.rsplit_once('.').unwrap_or(("", class));
        let source = self.archive.source(module)?.unwrap_or_default();
        let found = Rc::new(constants::of_class(&source, name));
        self.constants.borrow_mut().insert(class.clone(), found.clone());
        Ok(found)
    }
}

/// A module: what it is called by others, what it is, and what it has.
#[derive(Clone)]
pub struct Module<'a> {
    file: &'a TorchFile,
    object: Rc<Object>,
    path: String,
}

impl Module<'_> {
    /// Its place among the others, such as `encoder.encoder.net.0`; empty for the one that holds all.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of its class, without that of its Python module.
    #[must_use]
    pub fn class(&self) -> &str {
        self.object.class.rsplit('.').next().unwrap_or_default()
    }

    /// Something is wrong with it.
    #[must_use]
    pub fn error(&self, reason: impl std::fmt::Display) -> anyhow::Error {
        let path = if self.path.is_empty() { "the whole" } else { &self.path };
        anyhow!("{path} ({}): {reason}", self.class())
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.object.attributes.iter().find(|(other, _)| &**other == name).map(|(_, value)| value)
    }

    fn missing(&self, what: &str, name: &str) -> anyhow::Error {
        self.error(format_args!("it has no {what} {name:?}"))
    }

    fn within(&self, name: &str, object: &Rc<Object>) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { file: self.file, object: object.clone(), path }
    }

    /// The module in it of that name; nothing where there is none.
    #[must_use]
    pub fn maybe_child(&self, name: &str) -> Option<Self> {
        match self.find(name) {
            Some(Value::Object(object)) => Some(self.within(name, object)),
            _ => None,
        }
    }

    /// The module in it of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn child(&self, name: &str) -> anyhow::Result<Self> {
        self.maybe_child(name).ok_or_else(|| self.missing("module", name))
    }

    /// The modules in it whose names are numbers: those of a list or of a sequence, in order.
    #[must_use]
    pub fn children(&self) -> Vec<Self> {
        (0..).map_while(|index: usize| self.maybe_child(&index.to_string())).collect()
    }

    /// A whole number of its attributes; nothing where there is none of that name.
    #[must_use]
    pub fn maybe_int(&self, name: &str) -> Option<i64> {
        match self.find(name) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// A count of its attributes.
    ///
    /// # Errors
    /// When there is none, or less than 0.
    pub fn count(&self, name: &str) -> anyhow::Result<usize> {
        let value = self.maybe_int(name).ok_or_else(|| self.missing("whole number", name))?;
        usize::try_from(value).map_err(|_| self.error(format_args!("its {name} is {value}")))
    }

    /// Whether it has that attribute and it is true.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        matches!(self.find(name), Some(Value::Bool(true)))
    }

    /// A text of its attributes; nothing where there is none of that name.
    #[must_use]
    pub fn maybe_text(&self, name: &str) -> Option<&str> {
        match self.find(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A pair of counts of its attributes; nothing where there is none of that name.
    #[must_use]
    pub fn maybe_pair(&self, name: &str) -> Option<(usize, usize)> {
        let Some(Value::List(values)) = self.find(name) else { return None };
        let [Value::Int(first), Value::Int(second)] = values[..] else { return None };
        Some((usize::try_from(first).ok()?, usize::try_from(second).ok()?))
    }

    /// A tensor of its own; nothing where there is none of that name.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn maybe_tensor(&self, name: &str) -> anyhow::Result<Option<Array>> {
        let Some(Value::Tensor(place)) = self.find(name) else { return Ok(None) };
        let tensor = self.file.archive.tensor(place);
        tensor.with_context(|| self.error(format_args!("its {name}"))).map(Some)
    }

    /// A tensor of its own.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn tensor(&self, name: &str) -> anyhow::Result<Array> {
        self.maybe_tensor(name)?.ok_or_else(|| self.missing("tensor", name))
    }

    /// The numbers of a constant that its class declares; nothing where there is none of that name.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn maybe_constant(&self, name: &str) -> anyhow::Result<Option<Vec<f64>>> {
        Ok(self.file.constants(&self.object.class)?.get(name).cloned())
    }

    /// A constant that its class declares.
    ///
    /// # Errors
    /// When there is none, or it is not one number.
    pub fn constant(&self, name: &str) -> anyhow::Result<f64> {
        match self.maybe_constant(name)?.as_deref() {
            Some(&[number]) => Ok(number),
            _ => Err(self.missing("constant number", name)),
        }
    }

    /// A count that its class declares, up to a million.
    ///
    /// # Errors
    /// When there is none, or it is none.
    pub fn constant_count(&self, name: &str) -> anyhow::Result<usize> {
        let number = self.constant(name)?;
        if number.fract() == 0.0 && (0.0..=1e6).contains(&number) {
            return Ok(number as usize);
        }
        Err(self.error(format_args!("its {name} is {number}")))
    }
}
