//! Access to JSON values with errors that name the field.

use serde_json::Value;

use crate::model::ModelError;

/// JSON value and its path.
#[derive(Clone)]
pub(super) struct Field<'a> {
    path: String,
    value: &'a Value,
}

/// Matrix, `[row][column]`.
pub(super) struct JsonMatrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f32>,
}

impl JsonMatrix {
    /// Returns the values as `[column][row]`.
    pub fn transposed(&self) -> Vec<f32> {
        let value =
            |place: usize| self.values[place % self.rows * self.columns + place / self.rows];
        (0..self.values.len()).map(value).collect()
    }
}

impl<'a> Field<'a> {
    pub fn root(value: &'a Value) -> Self {
        Self {
            path: String::new(),
            value,
        }
    }

    /// Returns an error about this field.
    pub fn error(&self, reason: &str) -> ModelError {
        ModelError::Header(if self.path.is_empty() {
            reason.to_owned()
        } else {
            format!("{}: {reason}", self.path)
        })
    }

    fn expected(&self, what: &str) -> ModelError {
        let found = match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number that is not allowed here",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.error(&format!("expected {what}, found {found}"))
    }

    /// Returns the field called `name`; `None` if it is missing or null.
    pub fn find(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Some(Self { path, value })
    }

    /// Returns the field called `name`, or an error if it is missing or null.
    pub fn need(&self, name: &str) -> Result<Self, ModelError> {
        self.find(name)
            .ok_or_else(|| self.error(&format!("{name:?} is missing")))
    }

    /// Returns the field unless it is null.
    pub fn present(self) -> Option<Self> {
        (!self.value.is_null()).then_some(self)
    }

    /// Returns an error if the object has an unknown field that is neither null nor false.
    pub fn only(&self, known: &[&str]) -> Result<(), ModelError> {
        let nothing = [Value::Null, Value::Bool(false)];
        let mut fields = self.value.as_object().into_iter().flatten();
        match fields
            .find(|(name, value)| !known.contains(&name.as_str()) && !nothing.contains(value))
        {
            Some((name, _)) => Err(self.error(&format!("unknown field {name:?}"))),
            None => Ok(()),
        }
    }

    pub fn is_object(&self) -> bool {
        self.value.is_object()
    }

    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub fn text(&self) -> Result<&'a str, ModelError> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    /// Returns a positive integer, which some programs write as 3.0.
    pub fn count(&self) -> Result<usize, ModelError> {
        const MAX_EXACT: f64 = (1_u64 << 53) as f64;
        let whole = |number: &f64| number.fract() == 0.0 && (0.0..MAX_EXACT).contains(number);
        let count = self.value.as_u64().or_else(|| {
            self.value
                .as_f64()
                .filter(whole)
                .map(|number| number as u64)
        });
        let count = count
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| *count > 0);
        count.ok_or_else(|| self.expected("a positive integer"))
    }

    pub fn number(&self) -> Result<f64, ModelError> {
        self.value.as_f64().ok_or_else(|| self.expected("a number"))
    }

    /// Returns a number, which some programs write as a string.
    pub fn number_or_text(&self) -> Result<f64, ModelError> {
        match self.value {
            Value::String(text) => text.trim().parse().map_err(|_| self.expected("a number")),
            _ => self.number(),
        }
    }

    /// Returns a figure for a card, which some programs write as a string; `None` for what is no
    /// number within the range of 32 bits.
    pub fn measured(&self) -> Option<f64> {
        self.number_or_text()
            .ok()
            .filter(|number| (*number as f32).is_finite())
    }

    /// Returns a text for a card, or a number as text: some names are numbers.
    pub fn readable(&self) -> Option<String> {
        match self.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns a number that is finite in 32 bits.
    pub fn finite(&self) -> Result<f32, ModelError> {
        let number = self.number()? as f32;
        if number.is_finite() {
            Ok(number)
        } else {
            Err(self.expected("a number within the range of 32 bits"))
        }
    }

    /// Returns a flag, which some programs write as 1 or 0.
    pub fn flag(&self) -> Result<bool, ModelError> {
        match (self.value.as_bool(), self.value.as_u64()) {
            (Some(flag), _) => Ok(flag),
            (_, Some(number @ (0 | 1))) => Ok(number == 1),
            _ => Err(self.expected("true or false")),
        }
    }

    /// Returns a sample rate in Hz.
    pub fn rate(&self) -> Result<u32, ModelError> {
        let is_rate = |rate: &f64| rate.fract() == 0.0 && (1.0..f64::from(u32::MAX)).contains(rate);
        let rate = self.number_or_text().ok().filter(is_rate);
        rate.map(|rate| rate as u32)
            .ok_or_else(|| self.expected("a sample rate in Hz"))
    }

    /// Returns the items of a list.
    pub fn items(&self) -> Result<Vec<Self>, ModelError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.expected("a list"))?;
        let item = |(index, value): (usize, &'a Value)| Self {
            path: format!("{}[{index}]", self.path),
            value,
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Returns a list of numbers.
    pub fn numbers(&self) -> Result<Vec<f32>, ModelError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.expected("a list of numbers"))?;
        let number = |value: &Value| value.as_f64().map(|number| number as f32);
        items
            .iter()
            .map(number)
            .collect::<Option<_>>()
            .ok_or_else(|| self.expected("a list of numbers only"))
    }

    /// Returns a list of lists of numbers, all of equal length.
    pub fn matrix(&self) -> Result<JsonMatrix, ModelError> {
        let items = self.items()?;
        let mut values = Vec::new();
        let mut columns = 0;
        for (index, row) in items.iter().enumerate() {
            let row = row.numbers()?;
            if index == 0 {
                columns = row.len();
            }
            if row.len() != columns || columns == 0 {
                return Err(self.expected("lists of numbers of equal length"));
            }
            values.extend(row);
        }
        if items.is_empty() {
            return Err(self.expected("lists of numbers of equal length"));
        }
        Ok(JsonMatrix {
            rows: items.len(),
            columns,
            values,
        })
    }
}
