//! Calls out of order, with arguments that no host should pass.

use std::ptr::null;

use super::clap::Clap;
use super::{BLOCK, Bus, Instance, RATE, UNTOUCHED, inline_state, tone};
use crate::host::{EFFECT, INSTRUMENT};

#[test]
fn a_clap_takes_calls_in_any_order() {
    for id in [INSTRUMENT, EFFECT] {
        let mut plugin = Clap::new(id, &inline_state(id));
        let raw = plugin.raw;
        let output = [Bus::empty(2, BLOCK)];
        let process = |plugin: &mut Clap| {
            let input = [Bus::new(2, tone, BLOCK), Bus::new(2, tone, BLOCK)];
            plugin.process(Some(&input), Some(&output), BLOCK, false);
        };
        // SAFETY: the plugin is alive; the arguments are what this test is about.
        unsafe {
            let plugin_functions = &*raw;
            process(&mut plugin);
            assert_eq!(
                output[0].samples(0, false)[0],
                UNTOUCHED,
                "an inactive plugin plays nothing"
            );
            plugin_functions.reset.unwrap()(raw);
            plugin_functions.stop_processing.unwrap()(raw);
            plugin_functions.deactivate.unwrap()(raw);
            for rate in [0.0, -48_000.0, f64::NAN, f64::INFINITY] {
                plugin_functions.activate.unwrap()(raw, rate, 1, BLOCK as u32);
                process(&mut plugin);
                plugin_functions.deactivate.unwrap()(raw);
            }
            assert!(
                !plugin_functions.activate.unwrap()(raw, RATE, 0, 0),
                "no block is empty"
            );
            process(&mut plugin);
            // More than any memory.
            assert!(plugin_functions.activate.unwrap()(raw, RATE, 1, u32::MAX));
            process(&mut plugin);
            assert!(
                plugin_functions.activate.unwrap()(raw, RATE, u32::MAX, BLOCK as u32),
                "again"
            );
            process(&mut plugin);
            plugin_functions.process.unwrap()(raw, null());
            plugin_functions.deactivate.unwrap()(raw);
            process(&mut plugin);
            assert!(plugin_functions.get_extension.unwrap()(raw, null()).is_null());
        }
        assert!(plugin.activate(RATE, BLOCK));
        process(&mut plugin);
        assert!(output[0].samples(0, false)[0] != UNTOUCHED);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_vst3_takes_calls_in_any_order() {
    use std::ptr::null_mut;

    use vst3::Steinberg::Vst::*;
    use vst3::Steinberg::*;
    use vst3::{ComPtr, ComWrapper};

    use super::vst3::Vst3;
    use crate::vst3_module::Application;

    for id in [INSTRUMENT, EFFECT] {
        let state = inline_state(id);
        let mut plugin = Vst3::new(id, &state);
        let output = [Bus::empty(2, BLOCK)];
        let (component, processor) = (
            plugin.instance.component.clone(),
            plugin.instance.processor.clone(),
        );
        let controller = plugin.instance.controller.clone();
        let process = || {
            // SAFETY: a block of null pointers is valid.
            unsafe {
                let mut data: ProcessData = std::mem::zeroed();
                data.numSamples = BLOCK as i32;
                processor.process(&mut data)
            }
        };
        let mut text = [0; 128];
        // SAFETY: the objects are alive; the arguments are what this test is about.
        unsafe {
            let setup = |rate: f64, block: i32, size: i32| {
                let mut setup = ProcessSetup {
                    processMode: ProcessModes_::kOffline as i32,
                    symbolicSampleSize: size,
                    maxSamplesPerBlock: block,
                    sampleRate: rate,
                };
                processor.setupProcessing(&mut setup)
            };
            let arguments = || {
                let mut value = 0.0;
                let mut id = 0;
                let mut info: BusInfo = std::mem::zeroed();
                controller.getParamStringByValue(0x7000_0000, 0.5, &mut [0; 128]);
                controller.getParamValueByString(0x7000_0000, [0_u16; 1].as_mut_ptr(), &mut value);
                controller.setParamNormalized(0x7000_0000, 0.5);
                for media in [MediaTypes_::kAudio, MediaTypes_::kEvent] {
                    for index in [-1, 99, i32::MAX] {
                        component.getBusInfo(media as i32, 0, index, &mut info);
                        component.activateBus(media as i32, 0, index, 1);
                    }
                }
                component.setState(null_mut());
                component.getState(null_mut());
                controller.setComponentState(null_mut());
                controller.setComponentHandler(null_mut());
                processor.setBusArrangements(null_mut(), 2, null_mut(), 1);
                processor.setBusArrangements(null_mut(), -1, null_mut(), -1);
                processor.getLatencySamples();
                processor.getTailSamples();
                let mapping: ComPtr<IMidiMapping> = component.cast().unwrap();
                for (channel, number) in [(-1, 7), (16, 7), (0, -1), (0, 1_000)] {
                    mapping.getMidiControllerAssignment(0, channel, number, &mut id);
                }
            };
            controller.getParamStringByValue(plugin.instance.id("Mix"), 0.5, &mut text);
            arguments();
            assert_ne!(process(), kResultOk, "an inactive plugin plays nothing");
            processor.setProcessing(1);
            process();
            component.setActive(1);
            process();
            component.setActive(1);
            component.setActive(0);
            process();
            component.setActive(0);
            processor.setProcessing(0);
            assert_ne!(setup(RATE, -1, 0), kResultOk);
            setup(f64::NAN, 64, 0);
            component.setActive(1);
            component.setActive(0);
            assert_eq!(setup(RATE, BLOCK as i32, 0), kResultOk);
            component.setActive(1);
            processor.setProcessing(1);
            assert_eq!(process(), kResultOk);
            arguments();
            let mut negative: ProcessData = std::mem::zeroed();
            (negative.numSamples, negative.numInputs, negative.numOutputs) = (-5, -1, -1);
            assert_eq!(processor.process(&mut negative), kResultOk);

            // Two views are one window, which the end of the component closes.
            let view = ComPtr::from_raw(controller.createView(ViewType::kEditor)).expect("a view");
            drop(
                ComPtr::from_raw(controller.createView(ViewType::kEditor)).expect("the same view"),
            );
            assert_eq!(
                view.isPlatformTypeSupported(c"X11EmbedWindowID".as_ptr()),
                kResultOk
            );

            // The host ends the component while it plays, and goes on calling.
            assert_eq!(component.terminate(), kResultOk);
            assert_ne!(process(), kResultOk);
            let mut size = ViewRect {
                left: 0,
                top: 0,
                right: 0,
                bottom: 0,
            };
            assert_ne!(view.getSize(&mut size), kResultOk);
            view.onSize(&mut size);
            view.canResize();
            view.checkSizeConstraint(&mut size);
            view.removed();
            drop(view);
            arguments();
            component.setActive(1);
            processor.setProcessing(1);
            assert!(controller.createView(ViewType::kEditor).is_null());
            setup(RATE, BLOCK as i32, 0);
            assert_eq!(component.terminate(), kResultOk);

            // Without a context, and with one.
            component.initialize(null_mut());
            component.terminate();
            let application = ComWrapper::new(Application)
                .to_com_ptr::<FUnknown>()
                .unwrap();
            assert_eq!(component.initialize(application.as_ptr()), kResultOk);
            component.initialize(application.as_ptr());
            arguments();
        }
        assert!(plugin.instance.load(&state));
        assert!(plugin.activate(RATE, BLOCK));
        let input = [Bus::new(2, tone, BLOCK), Bus::new(2, tone, BLOCK)];
        plugin.process(Some(&input), Some(&output), BLOCK, false);
        assert!(output[0].samples(0, false)[0] != UNTOUCHED);
        plugin.deactivate();
    }
}
