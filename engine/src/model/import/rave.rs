//! Importer of RAVE exports: TorchScript archives of acids-ircam/RAVE, and of BRAVE.
//!
//! Nothing in an archive is executed. `archive` reads the zip file, `pickle` the module tree in it,
//! `constants` the constants (strides, dilations, slopes) that the Python sources declare; `module`
//! offers one module with all of that. `convolution` and `blocks` translate each class of modules
//! with the `builder`, and `codec` puts the methods together.
//!
//! Modules are recognised by class and attributes, not by a list of configurations: any network
//! built of the same blocks can be imported, and an unknown class is an error that names it.

mod archive;
mod blocks;
mod builder;
mod codec;
mod constants;
mod convolution;
mod error;
mod module;
mod pickle;

pub use codec::{Configuration, RaveImport, import};
pub use error::RaveError;
