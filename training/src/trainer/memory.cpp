// Memory of the CPU's tensors: its bound, its peak, and activation checkpointing.

#include <ATen/autocast_mode.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#define USABLE_SIZE malloc_usable_size
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#define USABLE_SIZE malloc_size
#endif

namespace {

// Below zero if memory that was there before the counting is freed.
std::atomic<int64_t> used{0};
std::atomic<int64_t> peak{0};
std::atomic<int64_t> bound{0};

#ifdef USABLE_SIZE
// libtorch's allocator, counted.
struct CountingAllocator final : c10::Allocator {
  c10::Allocator* inner = c10::GetDefaultCPUAllocator();

  static void release(void* data) {
    if (data != nullptr) {
      used -= static_cast<int64_t>(USABLE_SIZE(data));
      c10::GetDefaultCPUAllocator()->raw_deleter()(data);
    }
  }

  c10::DataPtr allocate(size_t bytes) override {
    const int64_t limit = bound;
    const int64_t needed = used + static_cast<int64_t>(bytes);
    if (limit > 0 && needed > limit) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", needed, " bytes of ", limit);
    }
    c10::DataPtr data = inner->allocate(bytes);
    void* raw = data.release_context();
    if (raw != nullptr) {
      const int64_t now = used += static_cast<int64_t>(USABLE_SIZE(raw));
      int64_t before = peak;
      while (before < now && !peak.compare_exchange_weak(before, now)) {
      }
    }
    return {raw, raw, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};
#endif

using torch::autograd::variable_list;

// Part of a graph that the backward pass computes again.
struct Block : torch::CustomClassHolder {
  void* closure;
  void (*run)(void*, at::Tensor**, at::Tensor**);
  void (*drop)(void*);
  size_t outputs;

  Block(void* closure, void (*run)(void*, at::Tensor**, at::Tensor**), void (*drop)(void*), size_t outputs)
      : closure(closure), run(run), drop(drop), outputs(outputs) {}
  ~Block() override {
    drop(closure);
  }

  variable_list operator()(const variable_list& inputs) const {
    std::vector<at::Tensor*> read, written(outputs);
    for (const auto& input : inputs) {
      read.push_back(new at::Tensor(input));
    }
    run(closure, read.data(), written.data());
    variable_list result;
    bool failed = false;
    for (auto* tensor : written) {
      if (tensor == nullptr) {
        failed = true;
        continue;
      }
      result.push_back(*tensor);
      delete tensor;
    }
    TORCH_CHECK_WITH(OutOfMemoryError, !failed, "out of memory in a block of the network");
    return result;
  }
};

constexpr std::array<at::DeviceType, 2> DEVICES = {at::kCPU, at::kCUDA};

// Autocast as it was in the forward pass, for as long as this lives.
struct AutocastState {
  std::array<bool, 2> before;
  std::array<at::ScalarType, 2> kinds_before;

  explicit AutocastState(const std::vector<int64_t>& forward) {
    for (size_t i = 0; i < DEVICES.size(); ++i) {
      before[i] = at::autocast::is_autocast_enabled(DEVICES[i]);
      kinds_before[i] = at::autocast::get_autocast_dtype(DEVICES[i]);
      at::autocast::set_autocast_enabled(DEVICES[i], forward[2 * i] != 0);
      at::autocast::set_autocast_dtype(DEVICES[i], static_cast<at::ScalarType>(forward[2 * i + 1]));
    }
    at::autocast::increment_nesting();
  }
  ~AutocastState() {
    for (size_t i = 0; i < DEVICES.size(); ++i) {
      at::autocast::set_autocast_enabled(DEVICES[i], before[i]);
      at::autocast::set_autocast_dtype(DEVICES[i], kinds_before[i]);
    }
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
  }
};

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static variable_list forward(
      torch::autograd::AutogradContext* context, c10::intrusive_ptr<Block> block, at::TensorList list) {
    const variable_list inputs = list.vec();
    std::vector<int64_t> autocast;
    for (const auto device : DEVICES) {
      autocast.push_back(at::autocast::is_autocast_enabled(device));
      autocast.push_back(static_cast<int64_t>(at::autocast::get_autocast_dtype(device)));
    }
    context->saved_data["autocast"] = autocast;
    context->saved_data["block"] = c10::IValue::make_capsule(block);
    context->save_for_backward(inputs);
    return (*block)(inputs);
  }

  static variable_list backward(torch::autograd::AutogradContext* context, variable_list gradients) {
    const auto block = c10::static_intrusive_pointer_cast<Block>(context->saved_data["block"].toCapsule());
    const auto saved = context->get_saved_variables();
    variable_list inputs, learning;
    for (const auto& input : saved) {
      auto leaf = input.detach();
      leaf.set_requires_grad(input.requires_grad());
      inputs.push_back(leaf);
      if (leaf.requires_grad()) {
        learning.push_back(leaf);
      }
    }
    variable_list outputs;
    {
      at::AutoGradMode with_gradients(true);
      AutocastState autocast(context->saved_data["autocast"].toIntVector());
      outputs = (*block)(inputs);
    }
    variable_list roots, root_gradients;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].requires_grad() && gradients[i].defined()) {
        roots.push_back(outputs[i]);
        root_gradients.push_back(gradients[i]);
      }
    }
    variable_list found;
    if (!roots.empty()) {
      found = torch::autograd::grad(roots, learning, root_gradients, std::nullopt, false, true);
    }
    // The first argument of the forward pass is no tensor.
    variable_list result(1);
    size_t next = 0;
    for (const auto& input : inputs) {
      const bool learns = input.requires_grad() && next < found.size();
      result.push_back(learns ? found[next++] : at::Tensor());
    }
    return result;
  }
};

}  // namespace

extern "C" {

// Counts the memory of tensors that are created from now on.
void ondes_memory_count() {
#ifdef USABLE_SIZE
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, 1);
#endif
}

// Bounds it; 0 for no bound.
void ondes_memory_bound(uint64_t bytes) {
  bound = static_cast<int64_t>(bytes);
}

// Returns free memory of the allocator to the system.
void ondes_memory_trim() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

uint64_t ondes_memory_used() {
  return static_cast<uint64_t>(std::max<int64_t>(used, 0));
}

// Returns the peak since the last call.
uint64_t ondes_memory_peak() {
  return static_cast<uint64_t>(std::max<int64_t>(peak.exchange(used), 0));
}

// Computes a block whose values are not kept for the backward pass. `inputs` and `outputs` are tensors that the caller
// owns; the closure is dropped once it is no longer needed. Returns an error text, which the caller frees, or null.
char* ondes_checkpoint(
    void* closure, void (*run)(void*, at::Tensor**, at::Tensor**), void (*drop)(void*), const at::Tensor* const* inputs,
    size_t input_count, at::Tensor** outputs, size_t output_count) {
  try {
    auto block = c10::make_intrusive<Block>(closure, run, drop, output_count);
    variable_list read;
    for (size_t i = 0; i < input_count; ++i) {
      read.push_back(*inputs[i]);
    }
    // Only a list of this type is searched for tensors that learn.
    const auto result = Checkpoint::apply(block, at::TensorList(read));
    for (size_t i = 0; i < output_count; ++i) {
      outputs[i] = new at::Tensor(result[i]);
    }
    return nullptr;
  } catch (const std::exception& error) {
    return strdup(error.what());
  }
}

}
