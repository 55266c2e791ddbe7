//! The header, the message line and the status bar.

use egui::accesskit::Toggled;
use egui::{Key, Modifiers, Role};
use egui_kittest::kittest::{NodeT, Queryable};
use ondes_engine::dsp::resample::Resampling;
use ondes_engine::executor::{Backend, Device, ExecutorSelection, Precision};
use ondes_engine::realtime::LoadStatus;
use ondes_player::compare_slots::CompareSlot;
use ondes_player::library::MissingFile;
use ondes_player::parameter::{BYPASS, DRIVER, QUALITY};
use ondes_ui::{
    DisplayCommand, EngineCommand, FileCommand, FilePurpose, HistoryCommand, KnobCommand,
    ModelCommand, PlayCommand,
};

use super::fake::{Fake, Test, open};
use super::hands::{choose, click, expect, press, rows, settle, slider};

#[test]
fn a_missing_model_says_so_and_is_tried_again() {
    let searched = ["/models", "/songs"].map(str::to_owned).to_vec();
    let mut test = open(Fake {
        missing: Some(MissingFile::new("Old Bell", searched)),
        ..Fake::playing()
    });
    assert!(
        test.query_by_label("“Old Bell” is missing; searched: /models and 1 more")
            .is_some()
    );
    click(&mut test, "Locate…");
    click(&mut test, "Retry");
    expect(
        &mut test,
        [
            FileCommand::Browse(FilePurpose::MissingModel),
            FileCommand::Retry,
        ],
    );
    assert!(test.query_by_label("Retry").is_none(), "it was found");
}

#[test]
fn unavailable_actions_are_not_offered() {
    let missing = Some(MissingFile::new("Old Bell", vec!["/models".into()]));
    let mut test = open(Fake {
        missing,
        able: false,
        ..Fake::playing()
    });
    assert!(test.query_by_label("Locate…").is_none());
    slider(&test, "Brightness").click_secondary();
    settle(&mut test);
    assert!(test.query_by_label("Reset").is_some());
    press(&mut test, Key::Escape);
    click(&mut test, "Retry");
    expect(&mut test, [FileCommand::Retry]);
}

#[test]
fn a_model_that_failed_says_why() {
    let mut test = open(Fake {
        status: LoadStatus::Failed("it is no model".into()),
        ..Fake::playing()
    });
    assert!(
        test.query_by_label("Cannot play this model: it is no model")
            .is_some()
    );
    assert!(test.query_by_label("Locate…").is_none());
    click(&mut test, "Retry");
    expect(&mut test, [FileCommand::Retry]);
}

#[test]
fn a_notice_is_read_and_gone() {
    let mut test = open(Fake {
        notice: Some("“Old Bell” was trained anew".into()),
        ..Fake::playing()
    });
    assert!(test.query_by_label("“Old Bell” was trained anew").is_some());
    assert!(test.query_by_label("Retry").is_none(), "nothing failed");
    click(&mut test, "OK");
    assert!(test.query_by_label("“Old Bell” was trained anew").is_none());
    expect(&mut test, [DisplayCommand::Dismiss]);
}

#[test]
fn settings_are_compared() {
    let mut test = open(Fake::playing());
    click(&mut test, "A");
    assert!(
        test.state_mut().commands().is_empty(),
        "it is heard already"
    );
    click(&mut test, "Copy to B");
    click(&mut test, "B");
    click(&mut test, "Copy to A");
    let wanted = [
        HistoryCommand::StoreSlot(CompareSlot::B).into(),
        HistoryCommand::RecallSlot(CompareSlot::B).into(),
        HistoryCommand::StoreSlot(CompareSlot::A).into(),
    ];
    assert_eq!(test.state_mut().commands(), wanted);
}

#[test]
fn the_header_is_at_hand() {
    let mut test = open(Fake::playing());
    for button in ["Panic", "Bypass", "Next model", "Previous model"] {
        click(&mut test, button);
    }
    let wanted = [
        PlayCommand::Panic.into(),
        KnobCommand::SetParameter(BYPASS, 1.0).into(),
        ModelCommand::Next.into(),
        ModelCommand::Previous.into(),
    ];
    assert_eq!(test.state_mut().commands(), wanted);
    assert_eq!(
        test.get_by_label("Bypass").accesskit_node().toggled(),
        Some(Toggled::True)
    );
    click(&mut test, "Browser");
    assert!(rows(&test).is_empty(), "the browser is closed");
}

#[test]
fn processing_and_quality_are_chosen() {
    let mut test = open(Fake::playing());
    choose(&mut test, Role::ComboBox, "Processing");
    click(&mut test, "Background");
    expect(&mut test, [KnobCommand::SetParameter(DRIVER, 2.0)]);
    choose(&mut test, Role::ComboBox, "Quality");
    click(&mut test, "Auto: lite");
    expect(&mut test, [KnobCommand::SetParameter(QUALITY, 3.0)]);
}

fn on_a_gpu() -> Fake {
    let devices = vec![Device::Auto, Device::Cpu, Device::Cuda(0)];
    Fake {
        executor: Some(ExecutorSelection::default()),
        devices: Some(Ok(devices)),
        ..Fake::playing()
    }
}

fn is_there(test: &Test, label: &str) -> bool {
    test.query_by_label(label).is_some()
}

#[test]
fn the_executor_is_chosen() {
    let mut test = open(Fake {
        devices: None,
        ..on_a_gpu()
    });
    assert!(
        test.state_mut().commands().is_empty(),
        "libtorch is not loaded before"
    );
    choose(&mut test, Role::ComboBox, "Processing");
    expect(&mut test, [EngineCommand::FindDevices]);
    assert!(is_there(&test, "Searching for libtorch …") && !is_there(&test, "Device CPU"));
    click(&mut test, "Executor Torch");
    assert!(test.state_mut().commands().is_empty(), "not yet");
    test.state_mut().model.devices = on_a_gpu().devices;
    settle(&mut test);
    click(&mut test, "Device CPU");
    assert!(
        test.state_mut().commands().is_empty(),
        "the native executor has no devices"
    );
    for label in [
        "Executor Torch",
        "Device cuda:0",
        "Precision f16",
        "Precision f16",
        "Executor Native",
    ] {
        click(&mut test, label);
    }
    let torch = ExecutorSelection {
        backend: Backend::Torch,
        ..ExecutorSelection::default()
    };
    let gpu = ExecutorSelection {
        device: Device::Cuda(0),
        ..torch
    };
    let all = [
        torch,
        gpu,
        ExecutorSelection {
            precision: Precision::F16,
            ..gpu
        },
        ExecutorSelection::default(),
    ];
    assert_eq!(
        test.state_mut().commands(),
        all.map(|executor| EngineCommand::SetExecutor(executor).into()),
        "the menu stays, and what is chosen is not chosen again"
    );
    click(&mut test, "Audio thread");
    expect(&mut test, [KnobCommand::SetParameter(DRIVER, 1.0)]);
    assert!(!is_there(&test, "Executor Torch"), "the menu is closed");
    choose(&mut test, Role::ComboBox, "Processing");
    assert_eq!(
        test.state_mut().commands(),
        [EngineCommand::FindDevices.into()],
        "libtorch may be there by now"
    );
}

#[test]
fn the_rate_conversion_is_chosen() {
    let mut test = open(Fake::playing());
    choose(&mut test, Role::ComboBox, "Processing");
    for label in [
        "Resampling Low latency",
        "Resampling Linear phase",
        "Resampling Linear phase",
        "Resampling Low latency",
    ] {
        click(&mut test, label);
    }
    let chosen = [Resampling::LinearPhase, Resampling::LowLatency]
        .map(|resampling| EngineCommand::SetResampling(resampling).into());
    assert_eq!(
        test.state_mut().commands(),
        chosen,
        "the menu stays, and what is chosen is not chosen again"
    );
}

#[test]
fn an_unavailable_executor_says_why() {
    let why = "Instruments run on the native executor.".to_owned();
    let executor = ExecutorSelection {
        backend: Backend::Torch,
        ..ExecutorSelection::default()
    };
    let mut test = open(Fake {
        executor: Some(executor),
        devices: Some(Err(why.clone())),
        ..on_a_gpu()
    });
    choose(&mut test, Role::ComboBox, "Processing");
    assert!(is_there(&test, &why) && !is_there(&test, "Device CPU"));
    assert!(
        test.get_by_label("Executor Torch")
            .accesskit_node()
            .is_disabled()
    );
    test.state_mut().commands();
    click(&mut test, "Executor Native");
    assert_eq!(
        test.state_mut().commands(),
        [EngineCommand::SetExecutor(ExecutorSelection::default()).into()],
        "there is a way back"
    );

    // TorchScript programs run on libtorch only.
    let mut test = open(Fake {
        native_supported: false,
        ..on_a_gpu()
    });
    choose(&mut test, Role::ComboBox, "Processing");
    assert!(!is_there(&test, "Executor Native"));
    test.state_mut().commands();
    click(&mut test, "Device CPU");
    let there = ExecutorSelection {
        device: Device::Cpu,
        ..ExecutorSelection::default()
    };
    assert_eq!(
        test.state_mut().commands(),
        [EngineCommand::SetExecutor(there).into()],
        "of other models nothing is said"
    );
    // The native executor resets device and precision.
    test.state_mut().model.native_supported = true;
    settle(&mut test);
    click(&mut test, "Executor Native");
    expect(
        &mut test,
        [EngineCommand::SetExecutor(ExecutorSelection::default())],
    );

    let mut test = open(Fake {
        executor: None,
        ..on_a_gpu()
    });
    choose(&mut test, Role::ComboBox, "Processing");
    assert!(
        !is_there(&test, "Executor Native") && test.state_mut().commands().is_empty(),
        "there is no model"
    );
}

#[test]
fn the_window_is_scaled() {
    let mut test = open(Fake::playing());
    click(&mut test, "Window");
    click(&mut test, "150 %");
    expect(&mut test, [DisplayCommand::SetScale(1.5)]);
    assert_eq!(test.ctx.zoom_factor(), 1.5);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Plus);
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Num0);
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Minus);
    settle(&mut test);
    test.key_press_modifiers(Modifiers::COMMAND, Key::Minus);
    settle(&mut test);
    let wanted = [
        DisplayCommand::SetScale(1.75).into(),
        DisplayCommand::SetScale(1.0).into(),
        DisplayCommand::SetScale(0.75).into(),
    ];
    assert_eq!(
        test.state_mut().commands(),
        wanted,
        "there is nothing below 75 %"
    );
    click(&mut test, "Window");
    click(&mut test, "Light");
    expect(
        &mut test,
        [DisplayCommand::SetTheme(egui::ThemePreference::Light)],
    );
    assert_eq!(test.ctx.theme(), egui::Theme::Light);
}
