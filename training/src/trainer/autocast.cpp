// Autocast for any device; the bindings of libtorch set only that of CUDA.

#include <ATen/autocast_mode.h>

extern "C" {

// Turns autocast on for a device, 0 for the CPU and 1 for CUDA, to bfloat16 (0) or float16 (1).
void ondes_autocast_enter(int device, int kind) {
  const auto type = device == 0 ? at::kCPU : at::kCUDA;
  at::autocast::set_autocast_dtype(type, kind == 0 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(type, true);
  at::autocast::increment_nesting();
}

// Turns it off and frees the converted weights.
void ondes_autocast_exit(int device) {
  at::autocast::set_autocast_enabled(device == 0 ? at::kCPU : at::kCUDA, false);
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
}

}
