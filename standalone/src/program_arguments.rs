//! Command-line options for the method and the settings of a TorchScript model.

use std::path::Path;

use anyhow::{anyhow, bail};
use clap::Args;
use ondes_engine::model::Model;
use ondes_engine::model::program::{ProgramOptions, SettingKind};
use ondes_engine::torch;

/// Options for the method and the settings of a TorchScript model.
#[derive(Args, Clone, Debug, Default)]
pub struct ProgramArguments {
    /// Play this method of a TorchScript model as an effect, such as decode; `ondes info MODEL`
    /// lists the methods
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Set a text or a sound of a TorchScript model, such as name=soft or source=take.wav;
    /// `ondes info MODEL` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().into(), value.into()))
}

impl ProgramArguments {
    /// Returns the options with whether each was given.
    pub fn given_options(&self) -> [(&'static str, bool); 2] {
        [
            ("--method", self.method.is_some()),
            ("--set", !self.settings.is_empty()),
        ]
    }

    /// Returns what was chosen of a model.
    ///
    /// # Errors
    /// Returns an error without the model's name if a setting is a control.
    pub fn options(&self, model: &Model) -> anyhow::Result<ProgramOptions> {
        let settings = model
            .program()
            .map(|program| &program.settings[..])
            .unwrap_or_default();
        let mut options = ProgramOptions {
            method: self.method.clone(),
            ..ProgramOptions::default()
        };
        for (name, value) in &self.settings {
            let kind = settings
                .iter()
                .find(|setting| setting.name == *name)
                .map(|setting| &setting.kind);
            if kind.is_none()
                && model
                    .header()
                    .controls
                    .iter()
                    .any(|control| control.name == *name)
            {
                bail!("{name} is a control; use --control {name}={value}");
            }
            if let Some(SettingKind::Sound(_)) = kind {
                options
                    .sounds
                    .insert(name.clone(), std::path::absolute(Path::new(value))?);
            } else {
                options.texts.insert(name.clone(), value.clone());
            }
        }
        Ok(options)
    }

    /// Returns the model with what was chosen.
    ///
    /// # Errors
    /// Returns an error that names the model's file if it has no such method or setting.
    pub fn apply(&self, model: Model, path: &Path) -> anyhow::Result<Model> {
        let chosen = self
            .options(&model)
            .and_then(|options| Ok(torch::with_options(&model, &options)?));
        // The program prints an error without its sources.
        chosen.map_err(|error| anyhow!("{}: {error}", path.display()))
    }
}
