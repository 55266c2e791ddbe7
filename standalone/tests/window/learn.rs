//! MIDI learn, from a knob in the window to the rack that receives the controller.

use std::time::Instant;

use egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use ondes::io::{Callback, MidiMessage};
use ondes::rack::Mixer;
use ondes_engine::realtime::Setup;
use ondes_player::parameter::ParameterId;
use ondes_player::parameter_source::ParameterSource;
use ondes_player::product::Product;
use ondes_ui::ViewModel as _;
use ondes_ui::view_model;
use ondes_ui::view_model::InstanceViewModel;
use ondes_ui::view_model::model_list::ModelList;

#[test]
fn a_knob_learns_the_controller_that_is_moved() {
    let mut mixer = Mixer::new(|| {});
    let slot = mixer.add(Product::Instrument).unwrap();
    let mut rack = mixer
        .open(
            Setup {
                sample_rate: 48_000,
                max_block: 64,
            },
            None,
            Vec::new(),
        )
        .unwrap();
    let track = mixer.track(slot).unwrap();
    let (instance, parameters) = (track.instance.clone(), track.parameters.clone());
    let view_model = InstanceViewModel::new(
        instance,
        parameters.clone(),
        ModelList::new(Product::Instrument, None),
    );
    let label = view_model.view().knobs.macros[0].knob.name.clone();
    let setter = parameters.clone();
    let mut test = Harness::builder()
        .with_size([908.0, 594.0])
        .with_max_steps(16)
        .build_ui_state(
            move |ui, (view_model, window): &mut (InstanceViewModel, ondes_ui::Window)| {
                view_model::show(view_model, window, ui, &*setter)
            },
            (view_model, ondes_ui::Window::new()),
        );
    test.run_steps(4);
    test.get_by_role_and_label(Role::Slider, &label)
        .click_secondary();
    test.run_steps(4);
    test.get_by_label("MIDI learn").click();
    test.run_steps(4);
    for (value, expected) in [(127, 1.0), (0, 0.0)] {
        rack.receive_midi(
            0,
            &MidiMessage::new(Instant::now(), &[0xB0, 20, value]).unwrap(),
        );
        rack.process(&[], &mut [&mut [0.0; 64], &mut [0.0; 64]]);
        assert_eq!(parameters.normalized(ParameterId(0)), Some(expected));
    }
    test.get_by_role_and_label(Role::Slider, &label)
        .click_secondary();
    test.run_steps(4);
    assert!(test.query_by_label("Forget MIDI controller 20").is_some());
}
