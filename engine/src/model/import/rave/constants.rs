//! Constants that the source of a TorchScript class declares, in lines such as
//! `stride : Final[Tuple[int]] = (4,)`.

use std::collections::HashMap;

/// Numbers by name, with 1 and 0 for true and false. Constants of other types are left out.
pub(super) type Constants = HashMap<String, Vec<f64>>;

/// Returns the constants of a class in the source of its Python module.
pub(super) fn of_class(source: &str, class: &str) -> Constants {
    let head = format!("class {class}(Module):");
    let body = source
        .lines()
        .skip_while(|line| line.trim_end() != head)
        .skip(1);
    let body =
        body.take_while(|line| line.starts_with(' ') && !line.trim_start().starts_with("def "));
    body.filter_map(constant).collect()
}

fn constant(line: &str) -> Option<(String, Vec<f64>)> {
    let (name, rest) = line.split_once(" : Final[")?;
    let (_, value) = rest.split_once("] = ")?;
    let value = value
        .trim()
        .trim_start_matches(['(', '['])
        .trim_end_matches([')', ']']);
    let number = |text: &str| match text {
        "True" => Some(1.0),
        "False" => Some(0.0),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    };
    let numbers = value
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(number);
    Some((name.trim().to_owned(), numbers.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_per_class() {
        let source = "class First(Module):\n  stride : Final[Tuple[int]] = (4,)\n  def forward(self) -> int:\n    x : Final[int] = 9\n\
                      class Second(Module):\n  weight : Tensor\n  slope : Final[float] = 0.20000000000000001\n  inplace : Final[bool] = False\n  \
                      mode : Final[str] = \"zeros\"\n  both : Final[Tuple[int, int]] = (1, -2)\n";
        assert_eq!(
            of_class(source, "First"),
            Constants::from([("stride".into(), vec![4.0])])
        );
        let second = of_class(source, "Second");
        assert_eq!(
            (second["slope"].as_slice(), second["inplace"].as_slice()),
            (&[0.2][..], &[0.0][..])
        );
        assert_eq!(
            (second["both"].as_slice(), second.len()),
            (&[1.0, -2.0][..], 3)
        );
        assert!(of_class(source, "Third").is_empty());
    }
}
