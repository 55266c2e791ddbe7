//! Module of an archive with its path, so that errors can name it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use super::archive::{Archive, TensorData};
use super::constants::{self, Constants};
use super::error::RaveError;
use super::pickle::{self, Object, Value};
use crate::model::ModelError;

/// Archive with its module tree.
pub(super) struct TorchFile {
    archive: Archive,
    root: Rc<Object>,
    /// Constants by class.
    constants: RefCell<HashMap<Rc<str>, Rc<Constants>>>,
}

impl TorchFile {
    /// Opens a TorchScript archive and reads its module tree.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let archive = Archive::open(path)?;
        let Value::Object(root) = pickle::read(&archive.pickle()?)? else {
            return Err(RaveError::archive("its pickle holds no module"));
        };
        Ok(Self {
            archive,
            root,
            constants: RefCell::default(),
        })
    }

    /// Returns the outermost module.
    pub fn root(&self) -> Module<'_> {
        Module {
            file: self,
            object: self.root.clone(),
            path: String::new(),
        }
    }

    fn constants(&self, class: &Rc<str>) -> Result<Rc<Constants>, ModelError> {
        if let Some(known) = self.constants.borrow().get(class) {
            return Ok(known.clone());
        }
        let (module, name) = class.rsplit_once('.').unwrap_or(("", class));
        let source = self.archive.source(module)?.unwrap_or_default();
        let constants = Rc::new(constants::of_class(&source, name));
        self.constants
            .borrow_mut()
            .insert(class.clone(), constants.clone());
        Ok(constants)
    }
}

/// Module of an archive: its path, class, attributes and child modules.
#[derive(Clone)]
pub(super) struct Module<'a> {
    file: &'a TorchFile,
    object: Rc<Object>,
    path: String,
}

impl Module<'_> {
    /// Returns the path from the root, such as `encoder.encoder.net.0`; empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the name of the class without its Python module.
    pub fn class(&self) -> &str {
        self.object.class.rsplit('.').next().unwrap_or_default()
    }

    /// Builds an error about this module.
    pub fn error(&self, reason: impl std::fmt::Display) -> ModelError {
        let path = if self.path.is_empty() {
            "the root"
        } else {
            &self.path
        }
        .to_owned();
        RaveError::Module {
            path,
            class: self.class().to_owned(),
            reason: reason.to_string(),
        }
        .into()
    }

    /// Returns an error about this module unless a condition holds.
    pub fn ensure(
        &self,
        condition: bool,
        reason: impl std::fmt::Display,
    ) -> Result<(), ModelError> {
        if condition {
            Ok(())
        } else {
            Err(self.error(reason))
        }
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.object
            .attributes
            .iter()
            .find(|(other, _)| &**other == name)
            .map(|(_, value)| value)
    }

    fn missing(&self, kind: &str, name: &str) -> ModelError {
        self.error(format_args!("it has no {kind} {name:?}"))
    }

    /// Returns a child module, or `None` if the module has no child of that name.
    pub fn maybe_child(&self, name: &str) -> Option<Self> {
        let Some(Value::Object(object)) = self.find(name) else {
            return None;
        };
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Some(Self {
            file: self.file,
            object: object.clone(),
            path,
        })
    }

    /// Returns a child module.
    pub fn child(&self, name: &str) -> Result<Self, ModelError> {
        self.maybe_child(name)
            .ok_or_else(|| self.missing("module", name))
    }

    /// Returns the child modules named `0`, `1`, …: the items of a list or sequence.
    pub fn children(&self) -> Vec<Self> {
        (0..)
            .map_while(|index: usize| self.maybe_child(&index.to_string()))
            .collect()
    }

    /// Returns an integer attribute.
    pub fn maybe_int(&self, name: &str) -> Option<i64> {
        match self.find(name) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns an integer attribute; an error if it is missing or negative.
    pub fn count(&self, name: &str) -> Result<usize, ModelError> {
        let value = self
            .maybe_int(name)
            .ok_or_else(|| self.missing("whole number", name))?;
        usize::try_from(value).map_err(|_| self.error(format_args!("its {name} is {value}")))
    }

    /// Tells whether a Boolean attribute exists and is true.
    pub fn is_set(&self, name: &str) -> bool {
        matches!(self.find(name), Some(Value::Bool(true)))
    }

    /// Returns a text attribute.
    pub fn maybe_text(&self, name: &str) -> Option<&str> {
        match self.find(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns an attribute that is a pair of counts.
    pub fn maybe_pair(&self, name: &str) -> Option<(usize, usize)> {
        let Some(Value::List(values)) = self.find(name) else {
            return None;
        };
        let [Value::Int(first), Value::Int(second)] = values[..] else {
            return None;
        };
        Some((usize::try_from(first).ok()?, usize::try_from(second).ok()?))
    }

    /// Returns a tensor attribute; an error if it exists but cannot be read.
    pub fn maybe_tensor(&self, name: &str) -> Result<Option<TensorData>, ModelError> {
        let Some(Value::Tensor(location)) = self.find(name) else {
            return Ok(None);
        };
        let tensor = self.file.archive.tensor(location);
        tensor
            .map(Some)
            .map_err(|error| self.error(format_args!("its {name}: {error}")))
    }

    /// Returns a tensor attribute.
    pub fn tensor(&self, name: &str) -> Result<TensorData, ModelError> {
        self.maybe_tensor(name)?
            .ok_or_else(|| self.missing("tensor", name))
    }

    /// Returns a number that the class declares as a constant.
    pub fn constant(&self, name: &str) -> Result<f64, ModelError> {
        match self
            .file
            .constants(&self.object.class)?
            .get(name)
            .map(Vec::as_slice)
        {
            Some(&[number]) => Ok(number),
            _ => Err(self.missing("constant number", name)),
        }
    }

    /// Returns a constant that is an integer from 0 to a million.
    pub fn constant_count(&self, name: &str) -> Result<usize, ModelError> {
        let number = self.constant(name)?;
        if number.fract() == 0.0 && (0.0..=1e6).contains(&number) {
            return Ok(number as usize);
        }
        Err(self.error(format_args!("its {name} is {number}")))
    }
}
