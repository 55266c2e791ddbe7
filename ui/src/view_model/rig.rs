//! Commands on blocks.

use std::thread::JoinHandle;

use ondes_engine::panics::contain;
use ondes_player::parameter::{Parameter, SCENE};
use ondes_player::parameter_source::ParameterSetter;
use ondes_player::programs::{ProgramChange, ProgramChoice, ProgramNumber};
use ondes_player::rig::block_state::{BlockState, Content};

use super::InstanceViewModel;
use super::undo::turn;
use crate::command::RigCommand;

/// Notice about branches that cannot be aligned.
const NOT_ALIKE: &str =
    "the branches are too soft or too different to be aligned: play something, and try again";

impl InstanceViewModel {
    pub(super) fn handle_rig(&mut self, setter: &impl ParameterSetter, command: RigCommand) {
        match command {
            RigCommand::Change(blocks) => {
                self.begin_rig_change();
                self.instance.set_blocks(blocks);
            }
            RigCommand::ChangeBranches(branches) => {
                self.begin_rig_change();
                self.instance.set_branches(branches);
            }
            RigCommand::AlignBranches => self.record_change("Aligned branches", |this| {
                if !this.instance.align_branches() {
                    this.own_notice = Some(NOT_ALIKE);
                }
            }),
            RigCommand::Finish => self.finish_rig_change("Rig"),
            RigCommand::Add(block) => self.add_block(block, None),
            RigCommand::Replace(place, block) => self.add_block(block, Some(place)),
            RigCommand::AddSceneProgram => {
                let scene = self.instance.read_state(|state| state.scenes.active) + 1;
                self.add_program(ProgramChoice::Scene(scene));
            }
            RigCommand::AddPresetProgram => {
                let preset = self.instance.read_state(|state| state.preset.clone());
                if let Some(preset) = preset {
                    self.add_program(ProgramChoice::Preset(preset));
                }
            }
            RigCommand::SetProgram(place, number) => self.change_programs(|programs| {
                if let Some(program) = programs.get_mut(place) {
                    program.number = number;
                }
            }),
            RigCommand::RemoveProgram(place) => self.change_programs(|programs| {
                if place < programs.len() {
                    programs.remove(place);
                }
            }),
            RigCommand::GoToScene(scene) => self.go_to_scene(setter, scene),
            RigCommand::NameScene(name) => {
                self.record_change("Name of a scene", |this| this.instance.rename_scene(name));
            }
        }
    }

    /// Lets the program change after the last one choose something.
    fn add_program(&mut self, choice: ProgramChoice) {
        self.change_programs(|programs| {
            let last = programs.iter().map(|program| program.number).max();
            let number = last.map_or(ProgramNumber::default(), ProgramNumber::next);
            programs.push(ProgramChange { number, choice });
        });
    }

    fn change_programs(&mut self, change: impl FnOnce(&mut Vec<ProgramChange>)) {
        self.record_change("Program changes", |this| {
            let mut programs = this.instance.programs();
            change(&mut programs);
            this.instance.set_programs(programs);
        });
    }

    /// Returns the name of what a program change chooses.
    pub(super) fn program_name(&self, choice: &ProgramChoice) -> String {
        match choice {
            ProgramChoice::Scene(scene) => {
                let scenes = self.instance.scenes();
                let known = scene.checked_sub(1).and_then(|index| scenes.get(index));
                match known.map_or("", |scene| &scene.name) {
                    "" => format!("Scene {scene}"),
                    name => format!("Scene {scene}: {name}"),
                }
            }
            ProgramChoice::Preset(location) => {
                let name = self.presets.name(location);
                name.unwrap_or_else(|| "a preset that is missing".into())
            }
        }
    }

    /// Reads the file of a block, to be added then, or put in the place of another one.
    pub(super) fn add_block(&mut self, block: BlockState, place: Option<usize>) {
        // Others may move meanwhile.
        let replaced = place.and_then(|place| self.instance.blocks().into_iter().nth(place));
        self.new_blocks.push(NewBlock {
            reader: std::thread::spawn(|| read(block)),
            replaced,
        });
    }

    /// Goes to a scene, in one step.
    fn go_to_scene(&mut self, setter: &impl ParameterSetter, scene: usize) {
        let before = (self.capture(), self.sound_snapshot().values);
        if let Some(parameter) = Parameter::get(SCENE) {
            turn(setter, SCENE, parameter.normalize(scene as f32 + 1.0));
        }
        self.instance.follow_scene(&*self.source, setter);
        let knobs = self.knob_edits_since(&before.1);
        self.record_since(before.0, knobs, format!("Scene {}", scene + 1));
    }

    /// Adds blocks whose files have been read.
    pub(super) fn add_new_blocks(&mut self) {
        let is_read = |new: &NewBlock| new.reader.is_finished();
        while let Some(place) = self.new_blocks.iter().position(is_read) {
            let NewBlock { reader, replaced } = self.new_blocks.remove(place);
            let Ok(block) = reader.join() else { continue };
            let mut blocks = self.instance.blocks();
            let before = replaced.and_then(|replaced| {
                let mut known = blocks.iter_mut();
                known.find(|known| **known == replaced)
            });
            self.begin_rig_change();
            match before {
                Some(before) => {
                    *before = BlockState {
                        block: block.block,
                        file: block.file,
                        content: block.content,
                        ..before.clone()
                    }
                }
                None => blocks.push(block),
            }
            self.instance.set_blocks(blocks);
            self.finish_rig_change("New block");
        }
    }

    fn begin_rig_change(&mut self) {
        if self.recorder.rig.is_none() {
            self.recorder.rig = Some(self.capture());
        }
    }

    fn finish_rig_change(&mut self, label: &str) {
        if let Some(before) = self.recorder.rig.take() {
            self.record_since(before, Vec::new(), label.into());
        }
    }
}

/// A block whose file is being read.
pub(super) struct NewBlock {
    reader: JoinHandle<BlockState>,
    /// The block that it replaces, if it is still there.
    replaced: Option<BlockState>,
}

/// Reads the file of a block.
fn read(mut block: BlockState) -> BlockState {
    if let Err(reason) = contain(|| block.find()) {
        block.content = Content::Missing(format!("the file cannot be read: {reason}").into());
    }
    block
}
