//! Which wheels there are, what is taken out of them, and when a folder is whole.

use std::fs;
use std::path::Path;

/// The version of libtorch that Ondes runs on, which is the one that tch wants.
pub const VERSION: &str = "2.11.0";

/// A wheel as it is published.
#[derive(Clone, Debug)]
pub struct Wheel {
    /// Where.
    pub url: String,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// Members and the places that they are put at, from the folder; both end with `/` where it is all that is below.
    pub members: Vec<(String, String)>,
}

impl Wheel {
    /// The name of its file.
    #[must_use]
    pub fn file(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }
}

/// What is wanted of libtorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Its libraries.
    Running,
    /// Its headers, too.
    Building,
}

/// What a folder is made of.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// What its file `build-version` says.
    pub version: String,
    /// In the order in which they are fetched.
    pub wheels: Vec<Wheel>,
    /// Files that must be there, with their lengths where they are known.
    pub files: Vec<(String, Option<u64>)>,
}

/// Where PyPI has the files of wheels. A path there stays with its content for ever.
const PUBLISHED: &str = "https://files.pythonhosted.org/packages";

/// The file that is written last, so that it stands for a whole.
pub(crate) const MARK: &str = "build-version";

impl Recipe {
    /// The libtorch that Ondes runs on, for Linux on x86-64.
    ///
    /// The wheel of torch holds the CUDA build. Its CPU half runs alone when two small CUDA libraries are beside it.
    #[must_use]
    pub fn published(content: Content) -> Self {
        let wheel = |path: &str, sha256: &str, bytes: u64, members: &[(&str, &str)]| Wheel {
            url: format!("{PUBLISHED}/{path}"),
            sha256: sha256.into(),
            bytes,
            members: members.iter().map(|(member, place)| ((*member).into(), (*place).into())).collect(),
        };
        let mut torch = wheel(
            "8c/8b/d7be22fbec9ffee6cff31a39f8750d4b3a65d349a286cf4aec74c2375662/torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a",
            530_604_548,
            &[
                ("torch/lib/libc10.so", "lib/libc10.so"),
                ("torch/lib/libgomp.so.1", "lib/libgomp.so.1"),
                ("torch/lib/libtorch_cpu.so", "lib/libtorch_cpu.so"),
            ],
        );
        let mut files = vec![
            ("lib/libtorch_cpu.so".to_owned(), Some(451_209_129)),
            ("lib/libc10.so".into(), Some(1_498_969)),
            ("lib/libgomp.so.1".into(), Some(254_009)),
            ("lib/libcudart.so.13".into(), Some(704_288)),
            ("lib/libcupti.so.13".into(), Some(4_152_208)),
        ];
        if content == Content::Building {
            torch.members.push(("torch/include/".into(), "include/".into()));
            files.push(("include/torch/csrc/api/include/torch/torch.h".into(), None));
        }
        let cudart = wheel(
            "2e/24/d1558f3b68b1d26e706813b1d10aa1d785e4698c425af8db8edc3dced472/nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
            "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
            2_243_632,
            &[("nvidia/cu13/lib/libcudart.so.13", "lib/libcudart.so.13")],
        );
        let cupti = wheel(
            "33/6d/737d164b4837a9bbd202f5ae3078975f0525a55730fe871d8ed4e3b952b0/nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl",
            "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
            10_715_597,
            &[("nvidia/cu13/lib/libcupti.so.13", "lib/libcupti.so.13")],
        );
        Self { version: VERSION.into(), wheels: vec![torch, cudart, cupti], files }
    }

    /// Bytes that are fetched.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.wheels.iter().map(|wheel| wheel.bytes).sum()
    }

    /// Why a folder is not what this makes, in one line; none where it is.
    #[must_use]
    pub fn fault(&self, folder: &Path) -> Option<String> {
        let version = fs::read_to_string(folder.join(MARK)).unwrap_or_default();
        if version.trim() != self.version {
            return Some(format!("{}: not a whole libtorch {}", folder.display(), self.version));
        }
        self.missing(folder)
    }

    /// The first file that is not there, or not as published, in one line.
    pub(crate) fn missing(&self, folder: &Path) -> Option<String> {
        let wrong = |(file, length): &&(String, Option<u64>)| {
            let found = fs::metadata(folder.join(file)).map_or(0, |metadata| metadata.len());
            found == 0 || length.is_some_and(|length| length != found)
        };
        let (file, _) = self.files.iter().find(wrong)?;
        Some(format!("{}: missing or not as published", folder.join(file).display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wheel_is_pinned_and_every_file_comes_from_somewhere() {
        for content in [Content::Running, Content::Building] {
            let recipe = Recipe::published(content);
            for wheel in &recipe.wheels {
                assert!(wheel.sha256.len() == 64 && wheel.sha256.bytes().all(|digit| digit.is_ascii_hexdigit()));
                assert!(wheel.url.starts_with("https://") && wheel.file().ends_with("x86_64.whl"), "{}", wheel.file());
            }
            assert!(recipe.wheels[0].file().starts_with(&format!("torch-{VERSION}-")));
            let places = || recipe.wheels.iter().flat_map(|wheel| &wheel.members).map(|(_, place)| place);
            for (file, _) in &recipe.files {
                let comes = |place: &String| if place.ends_with('/') { file.starts_with(place) } else { file == place };
                assert!(places().any(comes), "{file}");
            }
        }
        assert!(Recipe::published(Content::Running).wheels[0].members.len() == 3, "no headers");
    }

    #[test]
    fn a_half_made_folder_is_not_taken_for_a_whole() {
        let recipe = Recipe::published(Content::Running);
        let folder = tempfile::tempdir().unwrap();
        assert!(recipe.fault(folder.path()).unwrap().contains("not a whole"));
        fs::write(folder.path().join(MARK), "2.10.0\n").unwrap();
        assert!(recipe.fault(folder.path()).unwrap().contains("not a whole"));
        fs::write(folder.path().join(MARK), "2.11.0\n").unwrap();
        assert!(recipe.fault(folder.path()).unwrap().contains("libtorch_cpu.so"));
        fs::create_dir_all(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/libtorch_cpu.so"), "short").unwrap();
        assert!(recipe.fault(folder.path()).unwrap().contains("not as published"));
    }
}
