// Kineto, the profiler of libtorch: writes a Chrome trace of all operations.

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

static thread_local std::unique_ptr<at::RecordFunction> range;

// Calls and times of an operator, nanoseconds.
struct Operator {
  uint64_t calls = 0;
  uint64_t total = 0;
  uint64_t self = 0;
};

// Sums up the operators of a trace by name; on the CPU, the time of an operator itself is without that of those it calls.
static std::map<std::pair<bool, std::string>, Operator> summed(const std::vector<KinetoEvent>& events) {
  std::map<std::pair<bool, std::string>, Operator> operators;
  std::map<uint64_t, std::vector<const KinetoEvent*>> threads;
  for (const auto& event : events) {
    if (event.name() == "[memory]" || event.isHiddenEvent()) {
      continue;
    }
    if (event.deviceType() != at::kCPU) {
      auto& own = operators[{true, event.name()}];
      own.calls += 1;
      own.total += event.durationNs();
      own.self += event.durationNs();
    } else {
      threads[event.startThreadId()].push_back(&event);
    }
  }
  for (auto& [thread, list] : threads) {
    std::sort(list.begin(), list.end(), [](const KinetoEvent* a, const KinetoEvent* b) {
      return a->startNs() != b->startNs() ? a->startNs() < b->startNs() : a->endNs() > b->endNs();
    });
    // The calls around the present one, each with its end and its sum.
    std::vector<std::pair<uint64_t, Operator*>> around;
    for (const auto* event : list) {
      while (!around.empty() && around.back().first <= event->startNs()) {
        around.pop_back();
      }
      const uint64_t duration = event->durationNs();
      if (!around.empty() && around.back().second != nullptr) {
        auto& outer = around.back().second->self;
        outer -= std::min(outer, duration);
      }
      Operator* own = nullptr;
      if (event->scope() != static_cast<uint8_t>(at::RecordScope::USER_SCOPE)) {
        own = &operators[{false, event->name()}];
        own->calls += 1;
        own->total += duration;
        own->self += duration;
      }
      around.emplace_back(event->endNs(), own);
    }
  }
  return operators;
}

extern "C" {

// Starts recording operations of the CPU, on all threads, and, if asked for, of the GPU. Returns false if it cannot.
bool ondes_profiler_start(bool cuda) {
  try {
    std::set<ActivityType> activities{ActivityType::CPU};
    if (cuda) {
      activities.insert(ActivityType::CUDA);
    }
    torch::profiler::impl::ExperimentalConfig all_threads;
    all_threads.profile_all_threads = true;
    const ProfilerConfig config(
        ProfilerState::KINETO, /*report_input_shapes=*/true, /*profile_memory=*/true, /*with_stack=*/false,
        /*with_flops=*/false, /*with_modules=*/false, all_threads);
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
    if (range->isActive()) {
      range->before(name);
    }
  }
}

// Stops recording, calls `add` with each operator and writes the trace, if there is a path. Returns false if it cannot.
bool ondes_profiler_stop(
    const char* path, void* list,
    void (*add)(void* list, const char* name, bool on_device, uint64_t calls, uint64_t total, uint64_t self)) {
  try {
    range.reset();
    const auto result = disableProfiler();
    for (const auto& [name, own] : summed(result->events())) {
      add(list, name.second.c_str(), name.first, own.calls, own.total, own.self);
    }
    if (path != nullptr) {
      result->save(path);
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}
