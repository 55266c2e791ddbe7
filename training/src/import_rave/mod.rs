//! RAVE exports (TorchScript archives of acids-ircam/RAVE, and of BRAVE) become graphs of ours.
//!
//! Nothing of an archive is run. [`archive`] reads the zip file, [`pickle`] the tree of modules in it, [`constants`] what the code
//! beside it declares as constants (strides, dilations, slopes); [`module`] is one module with all of that. Then `sketch` is the
//! graph in the making, `convolution` and `blocks` say what each class of modules becomes, and [`codec`] puts the methods together.
//!
//! Modules are understood by their classes and attributes, not by a list of configurations: what is built of the same blocks is
//! imported, and a class that is not known is an error that names it.

pub mod archive;
mod blocks;
pub mod codec;
pub mod constants;
mod convolution;
pub mod module;
pub mod pickle;
mod sketch;

pub use codec::{Imported, Shape, import};
