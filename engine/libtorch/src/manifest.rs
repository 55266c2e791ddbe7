//! List of the wheels, their members and the files of a complete installation.

use std::fs;
use std::path::Path;

/// The libtorch version of Ondes; `tch` requires exactly this one.
pub const VERSION: &str = "2.11.0";

/// A published wheel.
#[derive(Clone, Debug)]
pub struct Wheel {
    /// Download URL.
    pub url: String,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Members to extract and their target paths, relative to the folder. Both end with `/` for a
    /// whole directory.
    pub members: Vec<(String, String)>,
}

impl Wheel {
    /// Returns the file name.
    #[must_use]
    pub fn file(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }
}

/// Extent of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Shared libraries only.
    Runtime,
    /// Shared libraries and headers.
    Development,
}

/// Wheels and resulting files of an installation.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Content of the file `build-version`.
    pub version: String,
    /// Wheels, in download order.
    pub wheels: Vec<Wheel>,
    /// Files of a complete installation, with their lengths in bytes if fixed.
    pub files: Vec<(String, Option<u64>)>,
}

/// PyPI's file server. Paths on it are immutable.
const PYPI_FILES: &str = "https://files.pythonhosted.org/packages";

/// Written last, so its presence marks a complete installation.
pub(crate) const VERSION_FILE: &str = "build-version";

impl Manifest {
    /// Returns the manifest of libtorch [`VERSION`] for Linux on x86-64.
    ///
    /// The torch wheel holds the CUDA build. Its CPU part needs two small CUDA libraries, which are
    /// in wheels of their own.
    #[must_use]
    pub fn published(contents: Contents) -> Self {
        let wheel = |path: &str, sha256: &str, bytes: u64, members: &[(&str, &str)]| Wheel {
            url: format!("{PYPI_FILES}/{path}"),
            sha256: sha256.into(),
            bytes,
            members: members
                .iter()
                .map(|(member, target)| ((*member).into(), (*target).into()))
                .collect(),
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
        if contents == Contents::Development {
            torch
                .members
                .push(("torch/include/".into(), "include/".into()));
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
        Self {
            version: VERSION.into(),
            wheels: vec![torch, cudart, cupti],
            files,
        }
    }

    /// Returns the download size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.wheels.iter().map(|wheel| wheel.bytes).sum()
    }

    /// Returns the reason why a folder is not a complete installation, in one line; `None` if it is
    /// complete.
    #[must_use]
    pub fn problem(&self, folder: &Path) -> Option<String> {
        let version = fs::read_to_string(folder.join(VERSION_FILE)).unwrap_or_default();
        if version.trim() != self.version {
            return Some(format!(
                "{}: no complete libtorch {}",
                folder.display(),
                self.version
            ));
        }
        self.missing_file(folder)
    }

    /// Returns a message about the first file that is missing or has another length than published.
    pub(crate) fn missing_file(&self, folder: &Path) -> Option<String> {
        let is_wrong = |(file, length): &&(String, Option<u64>)| {
            let found = fs::metadata(folder.join(file)).map_or(0, |metadata| metadata.len());
            found == 0 || length.is_some_and(|length| length != found)
        };
        let (file, _) = self.files.iter().find(is_wrong)?;
        Some(format!(
            "{}: missing or of the wrong size",
            folder.join(file).display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wheel_is_pinned_and_every_file_is_in_a_wheel() {
        for contents in [Contents::Runtime, Contents::Development] {
            let manifest = Manifest::published(contents);
            for wheel in &manifest.wheels {
                assert!(
                    wheel.sha256.len() == 64
                        && wheel.sha256.bytes().all(|digit| digit.is_ascii_hexdigit())
                );
                assert!(
                    wheel.url.starts_with("https://") && wheel.file().ends_with("x86_64.whl"),
                    "{}",
                    wheel.file()
                );
            }
            assert!(
                manifest.wheels[0]
                    .file()
                    .starts_with(&format!("torch-{VERSION}-"))
            );
            let targets = || {
                manifest
                    .wheels
                    .iter()
                    .flat_map(|wheel| &wheel.members)
                    .map(|(_, target)| target)
            };
            for (file, _) in &manifest.files {
                let is_extracted = |target: &String| {
                    if target.ends_with('/') {
                        file.starts_with(target)
                    } else {
                        file == target
                    }
                };
                assert!(targets().any(is_extracted), "{file}");
            }
        }
        assert!(
            Manifest::published(Contents::Runtime).wheels[0]
                .members
                .len()
                == 3,
            "no headers"
        );
    }

    #[test]
    fn a_partial_folder_is_incomplete() {
        let manifest = Manifest::published(Contents::Runtime);
        let folder = tempfile::tempdir().unwrap();
        assert!(
            manifest
                .problem(folder.path())
                .unwrap()
                .contains("no complete")
        );
        fs::write(folder.path().join(VERSION_FILE), "2.10.0\n").unwrap();
        assert!(
            manifest
                .problem(folder.path())
                .unwrap()
                .contains("no complete")
        );
        fs::write(folder.path().join(VERSION_FILE), "2.11.0\n").unwrap();
        assert!(
            manifest
                .problem(folder.path())
                .unwrap()
                .contains("libtorch_cpu.so")
        );
        fs::create_dir_all(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/libtorch_cpu.so"), "short").unwrap();
        assert!(
            manifest
                .problem(folder.path())
                .unwrap()
                .contains("wrong size")
        );
    }
}
