// Kineto, the profiler of libtorch: writes a Chrome trace of all operations.

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <exception>
#include <memory>
#include <set>

using namespace torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

static thread_local std::unique_ptr<at::RecordFunction> range;

extern "C" {

// Starts recording operations of the CPU and, if asked for, of the GPU. Returns false if it cannot.
bool ondes_profiler_start(bool cuda) {
  try {
    std::set<ActivityType> activities{ActivityType::CPU};
    if (cuda) {
      activities.insert(ActivityType::CUDA);
    }
    const ProfilerConfig config(ProfilerState::KINETO, /*report_input_shapes=*/true, /*profile_memory=*/true);
    prepareProfiler(config, activities);
    enableProfiler(config, activities, {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Ends the range of this thread, if any, and begins another; none if the name is null.
void ondes_profiler_range(const char* name) {
  range.reset();
  if (name != nullptr) {
    range = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
    range->before(name);
  }
}

// Stops recording and writes the trace. Returns false if it cannot.
bool ondes_profiler_stop(const char* path) {
  try {
    range.reset();
    disableProfiler()->save(path);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}
